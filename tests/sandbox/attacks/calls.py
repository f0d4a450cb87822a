"""Attempts by system calls that are rare, or allowed for something else."""

from sandbox.attacks.case import Case, Layer

_FILTER: tuple[Layer, ...] = ("seccomp",)


def _refused(
    name: str,
    of: tuple[str, ...],
    calls: str,
    *,
    before: str = "",
    by: str = "()",
    apart: bool = True,
    layers: tuple[Layer, ...] = _FILTER,
) -> Case:
    """Calls that the system refuses, one after the other.

    Args:
        name: Of the case.
        of: What it is of.
        calls: For `inside.each_refused`.
        before: Code that comes before them.
        by: Errors that are refusals, too.
        apart: See `Case`.
        layers: See `Case`.
    """
    code = f"{before}\neach_refused(\n{calls}\n    by={by},\n)"
    return Case(name, of, code, layers=layers, apart=apart)


_PAGES = """
import ctypes, mmap, os
pages = mmap.mmap(-1, 1 << 16)
at = ctypes.addressof(ctypes.c_char.from_buffer(pages))"""

MEMORY = (
    _refused(
        "memory that is locked, tagged, moved or remapped",
        ("137",),
        """
    ("pkey_alloc", 0, 0), ("mlock", at, 4096), ("mlockall", 1), ("mincore", at, 4096, bytes(8)),
    ("remap_file_pages", at, 4096, 0, 0, 0), ("mbind", at, 4096, 0, 0, 0, 0),
    ("move_pages", 0, 0, 0, 0, 0, 0), ("set_mempolicy", 0, 0, 0), ("get_mempolicy", 0, 0, 0, 0, 0),
""",
        before=_PAGES,
    ),
    _refused(
        "huge pages of the machine's pool",
        ("137",),
        """
    lambda: mmap.mmap(-1, 2 << 20, flags=0x40022), lambda: mmap.mmap(-1, 2 << 20, flags=0x40021),
""",
        before="import mmap",
        by="(22,)",
    ),
    _refused(
        "advice that merges, evicts or poisons pages",
        ("137",),
        """
    *(lambda advice=advice: pages.madvise(advice) for advice in (9, 12, 20, 21, 25, 100, 101)),
""",
        before=_PAGES,
        by="(22,)",
        apart=False,  # without walls root would take memory from the machine
    ),
    _refused(
        "whether a page of a library is in memory, and its eviction",
        ("138",),
        """
    lambda: os.preadv(library, [bytearray(1)], 0, 8),  # RWF_NOWAIT
    ("mincore", at, 4096, bytes(8)),
""",
        before=_PAGES + "\nlibrary = os.open(os.__file__, os.O_RDONLY)",
        by="(95,)",
    ),
    Case(
        "a library that is locked",
        ("138",),
        """
import fcntl, os, struct
first, second = open(os.__file__), open(os.__file__)
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
try: fcntl.fcntl(first, 37, lock); print("locked by descriptor")
except OSError as error: print(error)
fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
try: fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB); said = "refused"
except BlockingIOError: said = "through"
said
""",
        layers=_FILTER,
    ),
)

_PAIR = "import os, socket, struct\na, b = socket.socketpair()\ntalk = socket.socket(fileno=3)"

SOCKETS = (
    _refused(
        "an out-of-band byte",
        ("125",),
        "    lambda: a.send(b'x', socket.MSG_OOB), lambda: b.recv(1, socket.MSG_OOB),",
        before="import socket\na, b = socket.socketpair()",
    ),
    Case(
        "an out-of-band byte to the host",
        ("125",),
        """
import socket
talk = socket.socket(fileno=3)
try: talk.send(b"x", socket.MSG_OOB)
finally: talk.detach()
""",
        layers=_FILTER,
        apart=False,
    ),
    _refused(
        "data that is sent by reference",
        ("139",),
        """
    lambda: a.send(b"x", 0x4000000), lambda: a.send(b"x", 0x8000000),  # ZEROCOPY, SPLICE_PAGES
    lambda: a.sendmsg([b"x"], [], 0x4000000),
""",
        before="import socket\na, b = socket.socketpair()",
    ),
    _refused(
        "who is at the other end of a socket",
        ("139",),
        """
    # PEERCRED, PEERSEC, PEERGROUPS, NETNS_COOKIE, PEERPIDFD
    *(lambda option=option: a.getsockopt(1, option, 64) for option in (17, 31, 59, 71, 77)),
""",
        before="import socket\na, b = socket.socketpair()",
    ),
    _refused(
        "a handle of the host's process, from the socket to it",
        ("139",),
        """
    lambda: open_handle(),
""",
        before="""
import os, socket
def open_handle():
    talk = socket.socket(fileno=3)
    try: handle = talk.getsockopt(1, 77)  # SO_PEERPIDFD
    finally: talk.detach()
    call("pidfd_send_signal", handle, 0, 0, 0)
""",
        layers=("landlock", "seccomp"),
    ),
    _refused(
        "credentials that are forged, and asked for",
        ("139",),
        """
    lambda: a.setsockopt(1, 16, 1),  # SO_PASSCRED
    lambda: a.sendmsg([b"x"], [(1, 2, struct.pack("iII", os.getpid(), os.getuid(), os.getgid()))]),
""",
        before="import os, socket, struct\na, b = socket.socketpair()",
    ),
    _refused(
        "many descriptors on their way",
        ("135",),
        "    *[lambda: socket.send_fds(a, [b'x'], [0, 1, 2] * 80)] * 20,",
        before="import socket\na, b = socket.socketpair()",
    ),
    _refused(
        "options of sockets that change what is received",
        ("139",),
        """
    # ATTACH_FILTER, ATTACH_BPF, LOCK_FILTER, LINGER, BUSY_POLL, PEEK_OFF
    *(lambda option=option: a.setsockopt(1, option, bytes(16))
      for option in (26, 50, 44, 13, 46, 42)),
    lambda: a.setsockopt(1, 32, 1 << 30),  # SNDBUFFORCE
""",
        before="import socket\na, b = socket.socketpair()",
    ),
    _refused(
        "sockets of other kinds, with high bits",
        ("139",),
        """
    *(("socket", family, 1, 0) for family in (40, 38, 17, 30, 16, 44, 2 | 1 << 32)),
    *(("socketpair", 1, kind, 0, bytes(8))
      for kind in (2, 5, 2 | 1 << 31, 5 | 0x80800, 3 | 1 << 32)),
""",
    ),
    _refused(
        "the socket to the host as a server",
        ("139",),
        """
    ("bind", 3, b"\\1\\0x", 3), ("listen", 3, 5), ("accept4", 3, 0, 0, 0),
    ("recvmmsg", 3, bytes(64), 1, 0x40, 0), ("sendmmsg", 3, bytes(64), 1, 0x40),
""",
        layers=("process",),
        apart=False,
    ),
)

KERNEL = (
    _refused(
        "pipes that are spliced",
        ("140",),
        """
    ("splice", r, 0, w, 0, 1, 2), ("tee", r, w, 1, 2), ("vmsplice", w, bytes(16), 0, 0),
""",
        before="import os\nr, w = os.pipe()",
    ),
    _refused(
        "objects that wake, watch or wait",
        ("140",),
        """
    ("timer_create", 1, 0, bytes(8)), ("signalfd4", -1, bytes(8), 8, 0), ("inotify_init1", 0),
    ("fanotify_init", 0, 0), ("mq_open", b"sanderling", 0, 0, 0), ("io_setup", 1, bytes(8)),
""",
    ),
    _refused(
        "quotas, and priorities of disk and processor",
        ("140",),
        """
    ("quotactl", 0, 0, 0, 0), ("ioprio_set", 1, 0, 0x4000), ("sched_setattr", 0, bytes(56), 0),
    ("sched_setscheduler", 0, 3, bytes(4)),
""",
    ),
    _refused(
        "settings of the process",
        ("140",),
        """
    *(("prctl", *option) for option in (
        (35, 1, 0, 0, 0), (36, 1, 0, 0, 0), (59, 0, 0, 0, 0), (26, 1, 0, 0, 0),
        (53, 0, 2, 0, 0), (62, 0, 0, 0, 0), (67, 0, 0, 0, 0), (4, 1, 0, 0, 0),
        (0x59616D61, -1, 0, 0, 0), (29, 50_000, 0, 0, 0), (22, 2, 0, 0, 0), (47, 4, 0, 0, 0),
        (8, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 15, 0, 0, 0),
    )),
""",
    ),
    _refused(
        "settings of the processor",
        ("140",),
        """
    *(("arch_prctl", option, 0) for option in (0x5001, 0x5002, 0x1012, 0x4002, 0x1001)),
    ("modify_ldt", 1, bytes(16), 16), ("iopl", 3), ("ioperm", 0x80, 1, 1), ("membarrier", 0, 0, 0),
""",
        apart=False,  # they would change the registers of the interpreter
    ),
    _refused(
        "calls of newer kernels, and of none",
        ("140",),
        """
    ("statmount", bytes(64), bytes(64), 64, 0), ("listmount", bytes(64), bytes(64), 1, 0),
    ("file_getattr", -100, b".", bytes(64), 64, 0), ("file_setattr", -100, b".", bytes(64), 64, 0),
    ("open_tree_attr", -100, b".", 0, bytes(64), 64), ("lsm_get_self_attr", 100, 0, bytes(4), 0),
    ("lsm_set_self_attr", 100, bytes(64), 64, 0), ("lsm_list_modules", bytes(64), bytes(4), 0),
    ("pidfd_open", os.getpid(), 0), *(lambda n=n: raw(n) for n in (500, 600, 1_000, 100_000)),
""",
        before="""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def raw(number):
    if libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), str(number))
""",
    ),
    Case(
        "the call number -1",
        ("140",),
        "import ctypes; ctypes.CDLL(None).syscall(ctypes.c_long(-1))",
        "ended",
        _FILTER,
        apart=False,
        told="SIGSYS",
    ),
    Case(
        "calls that no filter sees",
        ("140",),
        """
import os, signal
signal.signal(signal.SIGILL, lambda *_: print("an illegal instruction"))
each_refused(("uretprobe",), ("uprobe",), by=(6, 22))
print("reached")
"reached"
""",
        "contained",
        ("process",),
        apart=False,
        needs=("x86_64",),
    ),
    _refused(
        "commands of fcntl that lease, notify, seal or send signals",
        ("140",),
        """
    *(lambda command=command: fcntl.fcntl(file, command, 1)
      for command in (1024, 1026, 1033, 10, 8)),
    *(lambda command=command: fcntl.fcntl(file, command, bytes(16))
      for command in (15, 1036, 1038)),
    lambda: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20),
""",
        before="import fcntl, os\nfile = os.open(os.__file__, os.O_RDONLY)",
    ),
    _refused(
        "ioctl with high bits, and on files",
        ("140",),
        """
    *(("ioctl", descriptor, request, at) for descriptor in (file, made) for request in (
        0x40049409, 0x89E0, 0x40085203, 0x80086601, 0xC040FF0B, 0x40086602, 0x5421 | 0x80000000,
    )),
""",
        before=_PAGES
        + "\nfile, made = os.open(os.__file__, 0), os.open('made', os.O_CREAT | os.O_RDWR)",
        by="(25,)",
        layers=("process",),
        apart=False,
    ),
    _refused(
        "signals with high bits, to the first process, to all",
        ("88", "host: signals"),
        """
    ("kill", victim | 1 << 32, 15), ("kill", -victim, 15), ("kill", 1, 0), ("kill", -1, 0),
    ("kill", 0, 0), ("tgkill", 1, 1, 0), ("tgkill", victim, victim, 15), ("tkill", 1, 0),
    ("kill", 0x7FFFFFFF, 9), ("prlimit64", 1, 7, 0, bytes(16)),
    ("prlimit64", victim, 4, bytes(16), 0),
""",
        by="(3,)",
        apart=False,  # without walls they would end the tests
    ),
)

FILES = (
    Case(
        "a set-user-id file that has something in it",
        ("141",),
        """
import os, stat
os.umask(0)
bits = stat.S_ISUID | stat.S_ISGID
def make(name): return os.open(name, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o6777)
source = os.open(os.__file__, os.O_RDONLY)
fills = {
    "write": lambda file: os.write(file, b"x"), "truncate": lambda file: os.ftruncate(file, 1),
    "send": lambda file: os.sendfile(file, source, 0, 1),
    "copy": lambda file: os.copy_file_range(source, file, 1),
    "reserve": lambda file: call("fallocate", file, 0, 0, 1),
    "vector": lambda file: os.pwritev(file, [b"x"], 0),
}
left = []
for name, fill in fills.items():
    file = make(name)
    try: fill(file)
    except OSError as error: print(name, error)
    info = os.fstat(file)
    if info.st_size and info.st_mode & bits: left.append(name)
    os.chmod(name, 0o6777)
    if os.stat(name).st_size and os.stat(name).st_mode & bits: left.append("chmod " + name)
print(left)
"through" if left else "refused"
""",
        layers=_FILTER,
        apart=False,
    ),
    Case(
        "names that are long, of bytes, or obeyed by terminals",
        ("141",),
        """
import os
for name in (b"x" * 255, b"\\xff\\xfe", b"\\x1b]0;x\\x07", b"-rf *", b"a\\nb", b" ", b"..."):
    os.makedirs(name + b"/" + name)
    open(name + b"/" + name + b"/file", "w").close()
os.mkdir("sticky", 0o7777)
"reached"
""",
        "contained",
        ("process",),
    ),
    _refused(
        "whiteouts, devices exchanged for files, links of descriptors",
        ("141",),
        """
    ("renameat2", -100, b"file", -100, b"/dev/null", 2),
    ("renameat2", -100, b"/dev/null", -100, b"file", 2),
    ("linkat", null, b"", -100, b"mine", 0x1000), ("linkat", -100, b"/dev/null", -100, b"mine", 0),
""",
        before="import os\nopen('file', 'w').close()\nnull = os.open('/dev/null', os.O_RDWR)",
        by="(2, 18, 30)",
        layers=("landlock", "capabilities"),
        apart=False,
    ),
    _refused(
        "paths by descriptors that may not be read",
        ("141",),
        """
    lambda: os.listdir(root), lambda: os.read(root, 1),
    lambda: os.open("etc/passwd", os.O_RDONLY, dir_fd=root),
    lambda: os.open(secret_file, os.O_RDWR), lambda: os.read(os.open(secret_file, 0x200000), 9),
    ("openat2", root, b"etc/passwd", struct.pack("QQQ", 0, 0, 0), 24),
    ("openat2", root, b"etc/passwd", struct.pack("QQQ", 0, 0, 0x10), 24),
    ("openat2", -100, b"../../etc/passwd", struct.pack("QQQ", 0, 0, 0x08), 24),
    lambda: os.fchdir(root) or open("etc/passwd"),
    lambda: os.open(f"/proc/self/fd/{root}/etc/passwd", os.O_RDONLY),
""",
        before="import os, struct\nroot = os.open('/', 0x200000 | os.O_DIRECTORY)",
        by="(2, 9, 18, 20, 22)",
        layers=("landlock", "namespaces"),
    ),
    _refused(
        "devices and settings of the machine, written",
        ("141",),
        """
    *(lambda path=path: os.open(path, os.O_RDWR) for path in (
        "/dev/mem", "/dev/kmsg", "/dev/tty", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/ptmx",
        "/dev/urandom", "/proc/sysrq-trigger", "/proc/self/oom_score_adj", "/proc/self/mem",
        "/sys/devices/system/cpu/cpu1/online", "/proc/sys/kernel/hostname", "/sys/kernel/security",
    )),
""",
        before="import os",
        by="(2, 6, 19, 20, 21, 30)",
        layers=("landlock", "namespaces"),
        apart=False,
    ),
)

CASES = (*MEMORY, *SOCKETS, *KERNEL, *FILES)
