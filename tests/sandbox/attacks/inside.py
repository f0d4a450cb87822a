"""Runs in the sandbox before each attack: the attacker's tools, and how to use an escape."""

import contextlib
import ctypes
import errno
import os
import socket
import sys
from typing import Any

# The host has set what it lets the attacker know (`estate.Targets`), more than any attacker would.
_known: "dict[str, Any]" = globals()

_libc = ctypes.CDLL(None, use_errno=True)
# (x86_64, aarch64)
_NUMBERS = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execveat": (322, 281),
    "fork": (57, -1),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "prctl": (157, 167),
    "ptrace": (101, 117),
    "renameat2": (316, 276),
    "rt_sigqueueinfo": (129, 138),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "tkill": (200, 130),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vfork": (58, -1),
}
_MACHINE = ("x86_64", "aarch64").index(os.uname().machine)


def call(name: str, *arguments: Any) -> int:
    """Makes a system call by name."""
    number = _NUMBERS[name][_MACHINE]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def reaches(name: str, *arguments: Any) -> str:
    """Says whether a call gets to the code in the kernel that carries it out."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise
    return "through"


def use(found: Any) -> str:
    """Turns an ``os`` that an escape has reached against the host: file, process, environment."""
    secret, outside = _known["secret_file"], _known["outside"]
    for attempt in (
        lambda: print(found.read(found.open(secret, os.O_RDONLY), 999)),
        lambda: found.write(found.open(outside + "/planted", os.O_CREAT | os.O_WRONLY), b"x"),
        lambda: found.utime(secret, (1, 1)),
        lambda: found.system(f"echo planted > {outside}/shell"),
        lambda: print(dict(found.environ)),
        lambda: found.kill(_known["victim"], 15),
    ):
        with contextlib.suppress(OSError):
            attempt()
    return "reached"


def kernel() -> Any:
    """Returns the module that talks to the host."""
    return sys.modules["kernel"]


def step() -> int:
    """Returns the number of the step in progress: the kernel's own frame tells it."""
    frame = sys._getframe()
    while frame.f_code.co_name != "_execute":
        frame = frame.f_back  # type: ignore[assignment]  # a step always runs beneath the kernel
    return int(frame.f_locals["number"])


def forge(kind: str, blobs: Any = (), **fields: object) -> None:
    """Writes a frame of the attacker's own to the host."""
    for buffer in kernel().pack(kind, fields, blobs):
        shout(buffer)


def done(value: object, blobs: Any = (), number: "int | None" = None) -> None:
    """Forges the end of a step, with this encoded value."""
    number = step() if number is None else number
    forge(
        "done",
        blobs,
        id=number,
        v=value,
        text="reached",
        error=None,
        threads=0,
        interrupted=False,
    )


def shout(data: Any) -> None:
    """Writes bytes to the host."""
    view = memoryview(data)
    while view:
        view = view[os.write(3, view) :]


def connect(family: int, kind: int, address: Any) -> str:
    """Talks to a server."""
    with socket.socket(family, kind) as talk:
        talk.settimeout(2)
        talk.connect(address)
        talk.send(b"found you")
    return "through"
