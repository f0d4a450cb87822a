"""`lock` as a whole: the layers it reports, and that a missing one is an error."""

import ast
import errno

import pytest

from sanderling.sandbox.lockdown import LockdownError, prepare
from sanderling.sandbox.lockdown._landlock import TRUNCATE_ABI, abi
from sanderling.sandbox.lockdown._linux import machine
from sanderling.sandbox.lockdown._rules import rules
from sanderling.sandbox.lockdown._seccomp import assemble
from support.locked import Station

# Takes one system call away before the lock, as an older kernel or a container would.
WITHOUT = """
import sys
sys.path.insert(0, package.removesuffix("/lockdown"))
import lockdown
from lockdown._linux import prctl
from lockdown._rules import ALLOW, Rule, fail
from lockdown._seccomp import load
from lockdown._syscalls import NUMBERS

policy = lockdown.policy_for(workdir, namespaces={namespaces})
prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
others = " ".join(name for name in NUMBERS if name != "{call}")
load((Rule(others, "", ALLOW), Rule("{call}", "", fail({code}))))
try:
    lockdown.lock(policy)
    said = "locked"
except lockdown.LockdownError as error:
    said = str(error)
"""


def test_the_layers_in_force(locked: Station, namespaces: bool) -> None:
    ended = locked.run(
        "said = layers",
        namespaces=namespaces,
        memory_bytes=1 << 30,
        file_bytes=1 << 20,
        open_files=100,
        cpu_seconds=10,
    )
    layers = ast.literal_eval(ended.said)

    assert layers.pop("landlock") >= 1
    assert layers.pop("seccomp").startswith("allow-list of ")
    assert layers == {
        "no_new_privs": True,
        "capabilities": "dropped",
        "namespaces": ["user", "mount", "ipc", "uts", "net"] if namespaces else [],
        "rlimits": {
            "AS": 1 << 30,
            "FSIZE": 1 << 20,
            "NOFILE": 100,
            "CORE": 1,
            "MEMLOCK": 0,
            "SIGPENDING": 64,
            "CPU": 10,
        },
        "snapshots": False,
    }


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("landlock_create_ruleset", errno.ENOSYS, "landlock: this kernel was built without it."),
        ("landlock_create_ruleset", errno.EOPNOTSUPP, "landlock: this kernel has it, switched off"),
        ("landlock_create_ruleset", errno.EPERM, "landlock: out of reach (landlock_create_ruleset"),
        ("landlock_add_rule", errno.EPERM, "landlock: [Errno 1] landlock_add_rule: Operation not"),
        ("landlock_restrict_self", errno.EPERM, "landlock: [Errno 1] landlock_restrict_self:"),
        ("seccomp", errno.EINVAL, "seccomp: [Errno 22] seccomp: Invalid argument."),
        ("prlimit64", errno.EPERM, "rlimits: RLIMIT_AS="),
        ("capset", errno.EPERM, "capabilities: [Errno 1] capset: Operation not permitted."),
    ],
)
def test_a_missing_layer_is_an_error(locked: Station, call: str, code: int, message: str) -> None:
    ended = locked.run(WITHOUT.format(call=call, code=code, namespaces=False), lock=False)

    assert ended.said.startswith(message)


def test_namespaces_that_were_asked_for_are_not_left_out(locked: Station) -> None:
    without = WITHOUT.format(call="unshare", code=errno.EPERM, namespaces=True)
    ended = locked.run(without, lock=False)

    assert ended.said.startswith("namespaces: [Errno 1] unshare: Operation not permitted. Let")


def test_a_process_with_threads_is_not_locked(locked: Station) -> None:
    ended = locked.run(
        "import sys, threading; sys.path.insert(0, package.removesuffix('/lockdown'))\n"
        "import lockdown\n"
        "stop = threading.Event(); threading.Thread(target=stop.wait).start()\n"
        "try: lockdown.lock(lockdown.policy_for(workdir, namespaces=False))\n"
        "except lockdown.LockdownError as error: said = str(error)\n"
        "stop.set()",
        lock=False,
    )

    assert ended.said.startswith("single thread: 2 threads run already. Lock a freshly forked")


def test_a_missing_work_folder_is_an_error(locked: Station, namespaces: bool) -> None:
    ended = locked.run("", workdir="/nowhere", namespaces=namespaces)

    assert ended.said.startswith("LockdownError: workdir: [Errno 2] No such file or directory")


def test_the_child_has_nothing_else_of_this_library(locked: Station, namespaces: bool) -> None:
    ended = locked.run(
        "import sys; said = [name for name in sys.modules if name.startswith('sanderling')]\n"
        "try: import sanderling; said.append('importable')\n"
        "except (ImportError, PermissionError): pass  # an editable install: seen, not readable",
        namespaces=namespaces,
    )

    assert ended.said == "[]"


def test_what_was_prepared_is_what_is_loaded() -> None:
    try:
        in_force = rules(None, truncate_by_path=abi() >= TRUNCATE_ABI)
    except LockdownError as error:
        pytest.skip(str(error))
    prepare()
    misses = assemble.cache_info().misses
    assemble(in_force, machine())
    assert assemble.cache_info().misses == misses
