"""The host's side: which policy fits this machine and this interpreter."""

import os
from collections.abc import Iterable
from typing import Literal

from ._paths import interpreter_paths
from ._policy import Policy
from ._probe import why_no_namespaces

_GIB = 1 << 30
_MIB = 1 << 20


def policy_for(
    workdir: str,
    *,
    memory_bytes: int = 4 * _GIB,
    file_bytes: int = 256 * _MIB,
    open_files: int = 256,
    cpu_seconds: int | None = None,
    extra_read: Iterable[str] = (),
    extra_write: Iterable[str] = (),
    namespaces: bool | Literal["auto"] = "auto",
    workdir_bytes: int | None = None,
    workdir_files: int = 65_536,
) -> Policy:
    """Returns the policy for a process that runs this interpreter and its installed packages.

    The source of editable installs is not in it, nor the user's site-packages.

    Args:
        workdir: The folder that may be written. It must exist when the process locks itself.
        memory_bytes: Address space.
        file_bytes: Largest size of one file.
        open_files: Number of descriptors.
        cpu_seconds: Processor time until the kernel kills the process; None for no limit.
        extra_read: Further files and folders to read.
        extra_write: Further files and folders to read and change.
        namespaces: Whether the process gets namespaces and a root of its own, in which what is not
            listed does not exist. ``"auto"``: where this machine lets us; `Policy.namespaces`
            says which it became, and without them there is no quota.
        workdir_bytes: With namespaces, the work folder is an empty tmpfs of this size, gone with
            the process. None keeps the host's folder, without a quota.
        workdir_files: With `workdir_bytes`, how many files and folders the work folder can hold.

    Raises:
        ValueError: A quota of the work folder without namespaces.
    """
    if workdir_bytes is not None and not namespaces:
        raise ValueError("workdir_bytes needs namespaces: without them nothing keeps the quota")
    workdir = os.path.realpath(workdir)
    return Policy(
        read=(*interpreter_paths(), *map(os.path.abspath, extra_read)),
        write=(workdir, "/dev/null", *map(os.path.realpath, extra_write)),
        workdir=workdir,
        memory_bytes=memory_bytes,
        file_bytes=file_bytes,
        open_files=open_files,
        cpu_seconds=cpu_seconds,
        namespaces=why_no_namespaces() is None if namespaces == "auto" else namespaces,
        workdir_bytes=workdir_bytes,
        workdir_files=workdir_files,
    )
