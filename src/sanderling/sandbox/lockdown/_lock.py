"""`lock`: all layers, in their order."""

import os

from ._errors import LockdownError
from ._landlock import TRUNCATE_ABI, abi, restrict
from ._own_root import enter
from ._policy import Policy
from ._process import drop_capabilities, forbid_new_privileges, require_single_thread, set_limits
from ._rules import count_allowed, rules
from ._seccomp import load


def lock(policy: Policy) -> dict[str, object]:
    """Locks this process for good. Call it in a fresh child, before any foreign byte is read.

    Args:
        policy: What stays within reach.

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
    limits = set_limits(
        memory_bytes=policy.memory_bytes,
        file_bytes=policy.file_bytes,
        open_files=policy.open_files,
        cpu_seconds=policy.cpu_seconds,
    )
    forbid_new_privileges()
    restrict(policy.read, policy.write, version=landlock_abi)
    in_force = rules(os.getpid(), truncate_by_path=landlock_abi >= TRUNCATE_ABI)
    load(in_force)
    return {
        "no_new_privs": True,
        "capabilities": "dropped",
        "rlimits": limits,
        "landlock": landlock_abi,
        "namespaces": namespaces,
        "seccomp": f"allow-list of {count_allowed(in_force)} calls",
    }
