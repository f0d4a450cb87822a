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
    "accept4": (288, 242),
    "add_key": (248, 217),
    "arch_prctl": (158, -1),
    "bind": (49, 200),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execveat": (322, 281),
    "fadvise64": (221, 223),
    "fallocate": (285, 47),
    "fanotify_init": (300, 262),
    "file_getattr": (468, 468),
    "file_setattr": (469, 469),
    "fork": (57, -1),
    "fsopen": (430, 430),
    "get_mempolicy": (239, 236),
    "getsockopt": (55, 209),
    "init_module": (175, 105),
    "inotify_init1": (294, 26),
    "io_setup": (206, 0),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "linkat": (265, 37),
    "listen": (50, 201),
    "listmount": (458, 458),
    "lsm_get_self_attr": (459, 459),
    "lsm_list_modules": (461, 461),
    "lsm_set_self_attr": (460, 460),
    "madvise": (28, 233),
    "mbind": (237, 235),
    "membarrier": (324, 283),
    "memfd_secret": (447, 447),
    "mincore": (27, 232),
    "mlock": (149, 228),
    "mlockall": (151, 230),
    "mmap": (9, 222),
    "modify_ldt": (154, -1),
    "mount": (165, 40),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pkey_alloc": (330, 289),
    "prctl": (157, 167),
    "preadv2": (327, 286),
    "prlimit64": (302, 261),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "recvmmsg": (299, 243),
    "remap_file_pages": (216, 234),
    "renameat2": (316, 276),
    "rt_sigqueueinfo": (129, 138),
    "sched_setattr": (314, 274),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "set_mempolicy": (238, 237),
    "setns": (308, 268),
    "setsockopt": (54, 208),
    "shmget": (29, 194),
    "signalfd4": (289, 74),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "splice": (275, 76),
    "statmount": (457, 457),
    "tee": (276, 77),
    "tgkill": (234, 131),
    "timer_create": (222, 107),
    "tkill": (200, 130),
    "unshare": (272, 97),
    "uprobe": (336, -1),
    "uretprobe": (335, -1),
    "userfaultfd": (323, 282),
    "vfork": (58, -1),
    "vmsplice": (278, 75),
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


def each_refused(*calls: Any, by: "tuple[int, ...]" = ()) -> str:
    """Makes calls and says whether all of them were refused.

    Args:
        calls: Each the name of a system call and its arguments, or a function.
        by: Errors that are refusals, too.
    """
    through = []
    for attempt in calls:
        name, *arguments = attempt if isinstance(attempt, tuple) else (attempt,)
        try:
            if callable(name):
                name()
            elif _NUMBERS[name][_MACHINE] >= 0:
                call(name, *arguments)
            else:
                continue
        except OSError as error:
            print(name, error)
            if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS, *by):
                continue
        through.append(str(name))
    print("through:", *through)
    return "through" if through else "refused"


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
