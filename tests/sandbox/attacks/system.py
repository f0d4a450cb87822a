"""Attempts on the kernel of the system."""

from sandbox.attacks.case import Case, Layer

_FILTER: tuple[Layer, ...] = ("seccomp",)
_POWERS: tuple[Layer, ...] = ("capabilities", "namespaces", "seccomp")

CASES = (
    *(
        Case(
            f"reach {name}",
            (*technique, row),
            f"reaches({name!r}, {arguments})",
            layers=layers,
        )
        for name, arguments, technique, row, layers in (
            ("io_uring_setup", "8, bytes(120)", ("104",), "kernel: surface", _FILTER),
            ("bpf", "0, bytes(128), 128", ("106",), "kernel: surface", _FILTER),
            ("perf_event_open", "bytes(128), 0, -1, -1, 0", ("106",), "kernel: surface", _POWERS),
            ("userfaultfd", "1", ("106",), "kernel: surface", _FILTER),
            (
                "name_to_handle_at",
                "-100, b'.', bytes(136), bytes(4), 0",
                (),
                "kernel: surface",
                _FILTER,
            ),
            ("kcmp", "0, 0, 0, 0, 0", (), "kernel: surface", _FILTER),
            ("keyctl", "0, -3, 0, 0, 0", ("106",), "kernel: objects", _FILTER),
            ("add_key", "b'user', b'x', b'y', 1, -2", ("106",), "kernel: objects", _FILTER),
            ("shmget", "0, 4096, 0o1600", (), "kernel: objects", _FILTER),
            ("msgget", "0, 0o1600", (), "kernel: objects", _FILTER),
            ("semget", "0, 1, 0o1600", (), "kernel: objects", _FILTER),
            ("memfd_secret", "0", (), "kernel: objects", _FILTER),
            ("unshare", "0x10000000", ("106",), "kernel: objects", _FILTER),
            ("personality", "0x0040000", (), "kernel: surface", _FILTER),
        )
    ),
    Case(
        "open a file by its handle",
        ("106", "kernel: surface"),
        "reaches('open_by_handle_at', 3, bytes(136), 0)",
        layers=_FILTER,
    ),
    Case(
        "load a kernel module",
        ("106",),
        "reaches('init_module', bytes(8), 8, b'')",
        layers=_POWERS,
        apart=False,
    ),
    Case(
        "mount over the work folder",
        ("106", "kernel: privileges"),
        "import os; call('mount', b'x', os.getcwd().encode(), b'tmpfs', 0, 0); 'through'",
        layers=("landlock", "capabilities", "seccomp"),
        apart=False,
    ),
    Case(
        "a namespace, then mount in it",
        ("106",),
        """
call("unshare", 0x10020000)
call("mount", b"none", b"/", 0, 0x44000, 0)
"through"
""",
        layers=("landlock", "seccomp"),
        apart=False,
    ),
    Case(
        "i386 system calls",
        ("kernel: tables",),
        """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
""",
        "ended",
        _FILTER,
        apart=False,
        needs=("x86_64",),
        told="SIGSYS",
    ),
    Case(
        "x32 system calls",
        ("kernel: tables",),
        """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b8270000400f05c3"))  # mov eax, 0x40000027; syscall; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
""",
        "ended",
        _FILTER,
        apart=False,
        needs=("x86_64",),
        told="SIGSYS",
    ),
    Case(
        "become another user",
        ("kernel: privileges",),
        "import os; os.setresuid(1, 1, 1); 'through'",
        layers=_POWERS,
    ),
    Case(
        "change the root",
        ("kernel: privileges",),
        "import os; os.chroot('.'); 'through'",
        layers=("capabilities", "seccomp"),
    ),
    Case(
        "a device of the machine's memory",
        ("kernel: privileges",),
        "import os, stat; os.mknod('mem', 0o666 | stat.S_IFCHR, os.makedev(1, 1)); open('mem')",
        layers=("capabilities", "landlock", "namespaces", "seccomp"),
        apart=False,
    ),
    Case(
        "raise a limit",
        ("kernel: privileges",),
        """
import resource
try:
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); said = "through"
except (ValueError, OSError):
    said = "refused"
said
""",
        layers=("capabilities", "seccomp"),
        apart=False,
    ),
    Case(
        "type into the terminal",
        ("105", "kernel: privileges"),
        """
import fcntl
for number in (0, 1, 2, 3):
    for request in (0x5412, 0x541C):  # TIOCSTI, TIOCLINUX
        try: fcntl.ioctl(number, request, b"x"); print("through")
        except OSError as error: print(error)
open("/dev/tty", "w").write("x")
""",
        layers=("process",),
    ),
)
