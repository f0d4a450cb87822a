"""Landlock: which files this process may reach, and no TCP, signal or abstract socket outside it.

Source: ``linux/landlock.h`` and https://docs.kernel.org/userspace-api/landlock.html.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterable

from ._errors import LockdownError
from ._linux import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 10, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

TRUNCATE_ABI = 3
"""Below this ABI a file can be truncated by path past Landlock: seccomp has to refuse that."""

_FIRST_RIGHTS = REFER - 1  # ABI 1 knew all the bits below REFER
_ADDED_RIGHTS = {2: REFER, TRUNCATE_ABI: TRUNCATE, 5: IOCTL_DEV}
_NETWORK_ABI, _ALL_NETWORK = 4, 0b11  # bind and connect TCP
_SCOPE_ABI, _ALL_SCOPES = 6, 0b11  # abstract Unix sockets, signals

_ON_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_NEVER = EXECUTE | MAKE_CHAR | MAKE_SOCK | MAKE_FIFO | MAKE_BLOCK | IOCTL_DEV

_GET_VERSION = 1
_PATH_BENEATH = 1
_REMEDY = (
    "It needs Linux 5.13 or newer with Landlock switched on (add it to the lsm= boot parameter), "
    "and in a container a seccomp profile that lets landlock_* calls through"
)


def abi() -> int:
    """Returns the Landlock ABI of the running kernel, 1 or higher.

    Raises:
        LockdownError: The kernel has none, or it is switched off or out of reach.
    """
    try:
        return syscall("landlock_create_ruleset", None, 0, _GET_VERSION)
    except OSError as error:
        why = {
            errno.ENOSYS: "this kernel was built without it",
            errno.EOPNOTSUPP: "this kernel has it, switched off at boot",
        }.get(error.errno or 0, f"out of reach ({error.strerror})")
        raise LockdownError("landlock", why, _REMEDY) from error


def restrict(read: Iterable[str], write: Iterable[str], *, version: int) -> None:
    """Takes away every file but those beneath the given paths, for this thread and its children.

    All TCP is taken away from ABI 4 on; signals and abstract Unix sockets to the outside from
    ABI 6 on. Nothing may be executed, not even beneath the given paths.

    Args:
        read: Files and folders that may be read. One that does not exist is passed over.
        write: Files and folders that may be read and changed.
        version: The ABI to use: what `abi` returns, or an older one.

    Raises:
        LockdownError: The kernel refused.
    """
    handled = _FIRST_RIGHTS
    for since, right in _ADDED_RIGHTS.items():
        handled |= right if version >= since else 0
    attributes = struct.pack("<Q", handled)
    if version >= _NETWORK_ABI:
        attributes += struct.pack("<Q", _ALL_NETWORK)
    if version >= _SCOPE_ABI:
        attributes += struct.pack("<Q", _ALL_SCOPES)
    try:
        ruleset = syscall("landlock_create_ruleset", attributes, len(attributes), 0)
        try:
            for path in read:
                _allow(ruleset, path, READ_FILE | READ_DIR)
            for path in write:
                _allow(ruleset, path, handled & ~_NEVER)
            syscall("landlock_restrict_self", ruleset, 0)
        finally:
            os.close(ruleset)
    except OSError as error:
        raise LockdownError("landlock", str(error), _REMEDY) from error


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        # O_PATH: a name is enough, and a path that may not be read must not be opened.
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # what cannot be reached now cannot be reached behind the walls either
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _ON_A_FILE
        syscall("landlock_add_rule", ruleset, _PATH_BENEATH, struct.pack("<Qi", rights, beneath), 0)
    finally:
        os.close(beneath)
