"""Namespaces with a root of their own: what is not listed does not even exist.

The process enters new user, mount, IPC, UTS and network namespaces, which needs no privilege where
the machine lets users make user namespaces. Its root becomes a small read-only tmpfs that holds
read-only mounts of the listed paths, and the work folder. A PID namespace is not made here: only
the children of a process can be in a new one, so `_pid_namespace` is for who starts this process.

Source: mount_namespaces(7), user_namespaces(7), open_tree(2), mount_setattr(2), pivot_root(2).
"""

import contextlib
import os
import stat
import struct
from collections.abc import Iterable, Iterator

from ._errors import LockdownError
from ._linux import syscall
from ._pid_namespace import map_to_itself
from ._policy import Policy

NAMESPACES = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "net": 0x40000000,
}
"""What is entered, by name: the ``CLONE_NEW*`` flag."""

_AT_FDCWD = -100
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 0x1, 0x4
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 0x1, 0x2, 0x4, 0x8  # MOUNT_ATTR_*
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 1, 6
_MNT_DETACH = 2

_HOST_NAME = b"sandbox"
_ROOT_BYTES, _ROOT_FILES = 1 << 20, 4096  # it holds mount points and links, nothing else
NAMESPACES_REMEDY = (
    "Let users make user namespaces on this machine (sysctl user.max_user_namespaces; on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0), or do without: namespaces=False"
)


def enter(policy: Policy) -> list[str]:
    """Moves this process into its own namespaces and root, and there into the work folder.

    Returns:
        The names of the namespaces.

    Raises:
        LockdownError: The machine does not let us; the process is then half moved: end it.
    """
    try:
        _unshare()
        # The new root is built over the work folder: all of the host's tree is read before that.
        links: dict[str, str] = {}
        read, write = _resolve(policy.read, links), _resolve(policy.write, links)
        stage = os.path.realpath(policy.workdir)
        trees = _trees(policy, read, write, stage)
        _move(_tmpfs(_ROOT_BYTES, _ROOT_FILES, mode="755"), stage)
        made = {"/"}
        for link, target in links.items():
            _make_folder(stage, os.path.dirname(link), made)
            os.symlink(target, stage + link)
        for path, tree in sorted(trees.items()):
            _attach(tree, stage, path, made)
        _pivot(stage)
        os.chdir(stage)
    except OSError as error:
        raise LockdownError("namespaces", str(error), NAMESPACES_REMEDY) from error
    return list(NAMESPACES)


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    syscall("unshare", sum(NAMESPACES.values()))
    map_to_itself(user, group)
    syscall("sethostname", _HOST_NAME, len(_HOST_NAME))
    syscall("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


def _resolve(paths: Iterable[str], links: dict[str, str]) -> set[str]:
    """Returns where the paths lead, of those that can be reached.

    Args:
        paths: Absolute paths.
        links: Gets the symbolic links on the way, and what each of them says.
    """
    found: set[str] = set()
    plain: set[str] = set()  # most paths share their beginnings, and a look at each takes its time
    for path in paths:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # what cannot be reached now cannot be reached behind the walls either
        walked, rest = "", _parts(path)
        while rest:
            part = rest.pop(0)
            step = os.path.dirname(walked) if part == ".." else f"{walked}/{part}"
            target = links.get(step) or ("" if step in plain else _target(step))
            if not target:
                plain.add(step)
                walked = step
                continue
            links[step] = target
            rest = [*_parts(target), *rest]
            if target.startswith("/"):
                walked = ""
        found.add(walked or "/")
    return found


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # no link


def _trees(policy: Policy, read: set[str], write: set[str], workdir: str) -> dict[str, int]:
    """Copies what is listed, each path with all that is mounted beneath it.

    Returns:
        Where each copy belongs, and the descriptor of the copy: nothing shows it yet.
    """
    attributes = {path: _RDONLY for path in read if read.isdisjoint(_parents(path))}
    attributes |= dict.fromkeys(write - {workdir}, 0)
    trees = {path: _copy(path, more) for path, more in attributes.items()}
    if policy.workdir_bytes is None:
        trees[workdir] = _copy(workdir, _NOEXEC)
    else:
        trees[workdir] = _tmpfs(policy.workdir_bytes, policy.workdir_files, mode="700")
    return trees


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _copy(path: str, attributes: int) -> int:
    tree = syscall(
        "open_tree",
        _AT_FDCWD,
        os.fsencode(path),
        _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC,
    )
    if not stat.S_ISCHR(os.fstat(tree).st_mode):
        attributes |= _NODEV
    _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes | _NOSUID)
    return tree


def _attach(tree: int, stage: str, path: str, made: set[str]) -> None:
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        _make_folder(stage, path, made)
    else:
        _make_folder(stage, os.path.dirname(path), made)
        if not os.path.lexists(stage + path):  # it may be in a tree that is attached above it
            os.close(os.open(stage + path, os.O_CREAT | os.O_CLOEXEC, 0o644))
    _move(tree, stage + path)


def _make_folder(stage: str, path: str, made: set[str]) -> None:
    """Makes a folder with those that it lies in, beside those that were made already."""
    if path not in made:
        _make_folder(stage, os.path.dirname(path), made)
        with contextlib.suppress(FileExistsError):  # it is in a tree that is attached above it
            os.mkdir(stage + path)
        made.add(path)


def _move(tree: int, place: str) -> None:
    syscall("move_mount", tree, b"", _AT_FDCWD, os.fsencode(place), _MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def _pivot(root: str) -> None:
    os.chdir(root)
    # Onto itself: the old root then lies over the new one, and detaching it leaves the new.
    syscall("pivot_root", b".", b".")
    syscall("umount2", b".", _MNT_DETACH)
    os.chdir("/")
    _set_attributes(_AT_FDCWD, b"/", 0, _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _tmpfs(size: int, files: int, mode: str) -> int:
    """Returns the descriptor of a new tmpfs that nothing shows yet."""
    context = syscall("fsopen", b"tmpfs", 0)
    try:
        for key, value in {"size": str(size), "nr_inodes": str(files), "mode": mode}.items():
            syscall("fsconfig", context, _FSCONFIG_SET_STRING, key.encode(), value.encode(), 0)
        syscall("fsconfig", context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return syscall("fsmount", context, 0, _NOSUID | _NODEV | _NOEXEC)
    finally:
        os.close(context)


def _set_attributes(folder: int, path: bytes, flags: int, attributes: int) -> None:
    # struct mount_attr { u64 attr_set, attr_clr, propagation, userns_fd; }
    wanted = struct.pack("<4Q", attributes, 0, 0, 0)
    syscall("mount_setattr", folder, path, flags, wanted, len(wanted))
