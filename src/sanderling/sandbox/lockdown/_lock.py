"""`lock`: all layers, in their order."""

import contextlib
import errno
import os
from collections.abc import Callable

from ._errors import LockdownError
from ._landlock import TRUNCATE_ABI, abi, restrict
from ._linux import machine
from ._notify import NEW_LISTENER
from ._own_root import enter
from ._policy import Policy
from ._process import (
    drop_capabilities,
    forbid_new_privileges,
    let_be_traced,
    require_single_thread,
    set_limits,
)
from ._rules import ALLOW, count_allowed, rules, supervision
from ._seccomp import assemble, load


def prepare() -> None:
    """Does ahead, for all processes that are forked from this one, what is the same for each."""
    with contextlib.suppress(LockdownError):  # `lock` says it, too
        in_force = rules(None, truncate_by_path=abi() >= TRUNCATE_ABI)
        assemble(in_force, machine())
        assemble(supervision(), machine(), ALLOW)
        count_allowed(in_force)


def lock(policy: Policy, supervisor: Callable[[int], None] | None = None) -> dict[str, object]:
    """Locks this process for good. Call it in a fresh child, before any foreign byte is read.

    Args:
        policy: What stays within reach.
        supervisor: Makes this a process that its parent can copy: it takes the listener that
            decides on signals, and the parent may trace the process. Where the kernel gives no
            listener, as in a container that is supervised itself, it is not called, and the
            process cannot be copied.

    Returns:
        The layers in force: JSON data, for people to read.

    Raises:
        LockdownError: A layer is missing. The process is then half locked: end it.
    """
    require_single_thread()
    landlock_abi = abi()
    try:
        os.chdir(policy.workdir)
    except OSError as error:
        raise LockdownError("workdir", str(error), "Make the folder first") from error
    namespaces = enter(policy) if policy.namespaces else []
    drop_capabilities()
    forbid_new_privileges()
    restrict(policy.read, policy.write, version=landlock_abi)
    listener = None if supervisor is None else _load_supervision()
    if supervisor is not None and listener is not None:
        supervisor(listener)
        let_be_traced()
    own_pid = None if listener is not None else os.getpid()
    in_force = rules(own_pid, truncate_by_path=landlock_abi >= TRUNCATE_ABI)
    load(in_force)
    # Last: who may have few descriptors may send none where others of this user have many on the
    # way, as code in another sandbox can.
    limits = set_limits(
        memory_bytes=policy.memory_bytes,
        file_bytes=policy.file_bytes,
        open_files=policy.open_files,
        cpu_seconds=policy.cpu_seconds,
    )
    return {
        "no_new_privs": True,
        "capabilities": "dropped",
        "rlimits": limits,
        "landlock": landlock_abi,
        "namespaces": namespaces,
        "seccomp": f"allow-list of {count_allowed(in_force)} calls",
        "snapshots": listener is not None,
    }


def _load_supervision() -> int | None:
    try:
        return load(supervision(), flags=NEW_LISTENER, otherwise=ALLOW)
    except LockdownError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno == errno.EBUSY:
            return None  # a process has one listener, and somebody else has it
        raise
