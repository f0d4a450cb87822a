"""What hostile code may try, and what must come of it.

The code runs in a child that locked itself, with these names: ``secret`` (a file that all may read
and write by its mode), ``outside`` (a folder that all may write), ``package`` (the source of the
walls), ``workdir``. What it leaves in ``said`` is compared; an OSError is said by its errno's name.
"""

from dataclasses import dataclass

HIDDEN = ("EACCES", "ENOENT")  # refused by Landlock; with a root of its own, not even there
UNWRITABLE = ("EACCES", "ENOENT", "EROFS", "EXDEV")
REFUSED = ("EPERM",)
UNCHANGEABLE = (*UNWRITABLE, *REFUSED)  # before ABI 3 Landlock knows nothing of truncation


@dataclass(frozen=True)
class Attack:
    """One attempt."""

    name: str
    code: str
    outcomes: tuple[str, ...]
    harmless: bool = True
    """Whether it may be tried without walls, to see that the walls are what stops it."""


FILES = (
    Attack("read a file", "said = open(secret).read()", HIDDEN),
    Attack("read /etc/passwd", "said = open('/etc/passwd').read()", HIDDEN),
    Attack("list a folder", "import os; said = os.listdir(outside)", HIDDEN),
    Attack("list the root", "import os; said = os.listdir('/')", HIDDEN),
    Attack("read the library's own source", "said = open(package + '/_rules.py').read()", HIDDEN),
    *(
        Attack(f"control groups: {name}", code, HIDDEN, False)  # only version 1 has these
        for name, code in (
            ("names", "import os; said = os.listdir('/sys/fs/cgroup/cpu')"),
            ("processes", "said = open('/sys/fs/cgroup/cpu/cgroup.procs').read()"),
        )
    ),
    Attack("write a file", "said = open(secret, 'w').write('x')", UNWRITABLE),
    Attack("append to a file", "said = open(secret, 'a').write('x')", UNWRITABLE),
    Attack("make a file", "said = open(outside + '/x', 'w').write('x')", UNWRITABLE),
    Attack("make a file in /tmp", "said = open('/tmp/sandbox_x', 'x').name", UNWRITABLE, False),
    Attack("make a folder", "import os; said = os.mkdir(outside + '/d')", UNWRITABLE),
    Attack("truncate by path", "import os; said = os.truncate(secret, 0)", UNCHANGEABLE),
    Attack(
        "truncate by opening to read",
        "import os; said = os.open(secret, os.O_RDONLY | os.O_TRUNC)",
        UNCHANGEABLE,
    ),
    Attack(
        "open with neither read nor write",
        "import os; said = os.open(secret, os.O_ACCMODE | os.O_TRUNC)",
        UNCHANGEABLE,
    ),
    Attack("remove a file", "import os; said = os.unlink(secret)", UNWRITABLE, False),
    Attack("rename a file away", "import os; said = os.rename(secret, 'x')", UNWRITABLE, False),
    Attack(
        "move a file out",
        "import os; open('x', 'w').close(); said = os.rename('x', outside + '/x')",
        UNWRITABLE,
    ),
    Attack("symlink out", "import os; os.symlink(secret, 'l'); said = open('l').read()", HIDDEN),
    Attack(
        "symlink to a folder out, then through it",
        "import os; os.symlink('/', 'r'); said = open('r' + secret).read()",
        HIDDEN,
    ),
    Attack("dots out", "said = open('../../../../../../etc/passwd').read()", HIDDEN),
    Attack("hard link out", "import os; said = os.link(secret, 'h')", UNWRITABLE, False),
    Attack(
        "hard link to a library, to change it there",
        "import os; os.link(os.__file__, 'h'); said = open('h', 'a').name",
        (*REFUSED, *UNWRITABLE),
        False,
    ),
    Attack(
        "plant a module in the standard library",
        "import os; said = open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'a').name",
        UNWRITABLE,
        False,
    ),
    Attack(
        "plant a .pth file in site-packages",
        "import sysconfig; said = open(sysconfig.get_path('purelib') + '/x.pth', 'w').name",
        UNWRITABLE,
        False,
    ),
    Attack("shared memory file", "said = open('/dev/shm/sandbox_x', 'w').name", UNWRITABLE, False),
    Attack("named pipe", "import os; said = os.mkfifo('p')", ("EPERM", "EACCES")),
    Attack(
        "device node",
        "import os, stat; said = os.mknod('d', 0o600 | stat.S_IFCHR, os.makedev(1, 1))",
        ("EPERM", "EACCES"),
        False,
    ),
    Attack("terminal", "import os; said = os.openpty()", HIDDEN),
    Attack(
        "run a file of the work folder",
        "import os; open('x', 'w').write('#!/bin/sh'); said = os.execv('x', ['x'])",
        REFUSED,
        False,
    ),
    Attack(
        "help()'s file printer",
        "import builtins\n"
        "p = builtins.license; p._Printer__lines = None; p._Printer__filenames = [secret]\n"
        "p._Printer__setup(); said = 'keep' in ''.join(p._Printer__lines)",
        ("False", *HIDDEN),
    ),
)

PROC = (
    Attack(
        "environment of the host process",
        "import os; said = open(f'/proc/{os.getppid()}/environ').read()",
        HIDDEN,
    ),
    Attack(
        "memory of the host process",
        "import os; said = os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR)",
        HIDDEN,
    ),
    Attack(
        "files of the host process",
        "import os; said = os.listdir(f'/proc/{os.getppid()}/fd')",
        HIDDEN,
    ),
    Attack("own environment by /proc", "said = open('/proc/self/environ').read()", HIDDEN),
    Attack("own memory by /proc", "said = open('/proc/self/mem', 'rb+')", HIDDEN),
    Attack("own program by /proc", "said = open('/proc/self/exe', 'rb')", HIDDEN),
    Attack("root by /proc", "said = open('/proc/self/root' + secret).read()", HIDDEN),
    Attack("list processes", "import os; said = os.listdir('/proc')", HIDDEN),
    Attack(
        "inherited descriptors",
        "import os\n"
        "def is_open(fd):\n"
        "    try: return bool(os.fstat(fd))\n"
        "    except OSError: return False\n"
        "said = [fd for fd in range(3, 200) if is_open(fd)]",
        ("[]",),
    ),
)

OTHER_PROCESSES = (
    Attack(
        "kill the host process",
        "import os, signal; said = os.kill(os.getppid(), signal.SIGKILL)",
        REFUSED,
        False,
    ),
    Attack("is the host process there", "import os; said = os.kill(os.getppid(), 0)", REFUSED),
    Attack(
        "kill the group of the host",
        "import os, signal; said = os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)",
        REFUSED,
        False,
    ),
    Attack("kill all", "import os, signal; said = os.kill(-1, signal.SIGKILL)", REFUSED, False),
    Attack(
        "signal through a descriptor's owner",
        "import os, fcntl, socket\n"
        "a, b = socket.socketpair()\n"
        "fcntl.fcntl(a, 10, 9)  # F_SETSIG: SIGKILL\n"
        "fcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())\n"
        "fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)\n"
        "b.send(b'x'); said = 'sent'",
        REFUSED,
        False,
    ),
    Attack(
        "owner of a descriptor",
        "import os, fcntl; said = fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())",
        REFUSED,
    ),
    Attack(
        "signals from a descriptor",
        "import os, fcntl; said = fcntl.fcntl(1, fcntl.F_SETFL, os.O_ASYNC)",
        REFUSED,
    ),
    Attack(
        "limits of the host process",
        "import os, resource; said = resource.prlimit(os.getppid(), resource.RLIMIT_AS)",
        ("EPERM",),
    ),
    Attack(
        "processors of the host process",
        "import os; said = os.sched_setaffinity(os.getppid(), {0, 1})",
        REFUSED,
    ),
    Attack(
        "priority of the host process",
        "import os; said = os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        ("EPERM", "EACCES"),
        False,
    ),
    Attack("fork", "import os; said = os.fork()", REFUSED, False),
    Attack("forkpty", "import os; said = os.forkpty()", ("EPERM", *HIDDEN), False),
    Attack("shell", "import os; said = os.system('true')", ("32512",)),
    Attack(
        "subprocess",
        "import subprocess, sys; said = subprocess.run(['/bin/true']).returncode",
        REFUSED,
    ),
    Attack("spawn", "import os; said = os.posix_spawn('/bin/true', ['x'], {})", REFUSED, False),
    Attack("execute", "import os; said = os.execv('/bin/true', ['true'])", REFUSED, False),
    Attack(
        "worker processes",
        "import multiprocessing as m\n"
        "p = m.get_context('fork').Process(target=print); p.start(); said = p.pid",
        REFUSED,
        False,
    ),
    Attack(
        "outlive the host",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        "said = c.prctl(1, 0), ctypes.get_errno()  # PR_SET_PDEATHSIG",
        ("(-1, 1)",),
    ),
    Attack(
        "become traceable",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        "said = c.prctl(4, 1), ctypes.get_errno()  # PR_SET_DUMPABLE",
        ("(-1, 1)",),
    ),
)

NETWORK = (
    *(
        Attack(
            f"socket {family} {kind}",
            f"import socket as s; said = s.socket(s.{family}, s.{kind})",
            REFUSED,
        )
        for family, kind in (
            ("AF_INET", "SOCK_STREAM"),
            ("AF_INET", "SOCK_DGRAM"),
            ("AF_INET6", "SOCK_STREAM"),
            ("AF_UNIX", "SOCK_STREAM"),
            ("AF_UNIX", "SOCK_DGRAM"),
        )
    ),
    Attack(
        "netlink socket",
        "import socket as s; said = s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)",
        REFUSED,
    ),
    Attack(
        "resolve a name",
        "import socket\n"
        "try: said = socket.getaddrinfo('sanderling.invalid', 80)\n"
        "except socket.gaierror: said = 'no resolver'",
        ("no resolver",),
        False,
    ),
    Attack(
        "fetch a page",
        "import urllib.request, urllib.error\n"
        "try: said = urllib.request.urlopen('http://127.0.0.1:9/').status\n"
        "except urllib.error.URLError as error: said = error.reason.errno",
        ("1",),
    ),
    Attack(
        "pair of datagram sockets, which can send to a path",
        "import socket as s; said = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)",
        REFUSED,
    ),
    Attack(
        "pair of packet sockets",
        "import socket as s; said = s.socketpair(s.AF_UNIX, s.SOCK_SEQPACKET)",
        REFUSED,
    ),
    Attack(
        "packet filter program",
        "import socket as s; a, b = s.socketpair()\n"
        "said = a.setsockopt(s.SOL_SOCKET, 26, bytes(16))  # SO_ATTACH_FILTER",
        REFUSED,
    ),
)

KERNEL = (
    Attack(
        "raise a limit",
        "import resource as r\n"
        "try: r.setrlimit(r.RLIMIT_CORE, (1 << 20, 1 << 20)); said = 'raised'\n"
        "except (ValueError, OSError): said = 'kept'",
        ("kept",),
        False,
    ),
    Attack("become another user", "import os; said = os.setresuid(1, 1, 1)", REFUSED, False),
    Attack("change the root", "import os; said = os.chroot('.')", REFUSED, False),
    Attack(
        "type into the terminal",
        "import fcntl; said = fcntl.ioctl(1, 0x5412, b'x')  # TIOCSTI",
        ("ENOTTY",),
        False,
    ),
    Attack("memory file", "import os; said = os.memfd_create('x')", REFUSED),
    Attack(
        "send an out-of-band byte",
        "import socket; said = socket.socketpair()[0].send(b'x', socket.MSG_OOB)",
        REFUSED,
        False,  # a kernel may be built without them
    ),
    Attack(
        "receive an out-of-band byte",
        "import socket; said = socket.socketpair()[0].recv(1, socket.MSG_OOB)",
        REFUSED,
    ),
    Attack(
        "a handle of the process at the other end",
        "import socket; said = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 77)",
        REFUSED,
    ),
    Attack(
        "huge pages of the machine's pool",
        "import mmap; said = mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | 0x40020).size()",
        ("EINVAL",),
        False,
    ),
    *(
        Attack(
            f"madvise: {name}",
            f"import mmap; said = mmap.mmap(-1, 4096).madvise({advice})",
            ("EINVAL",),
            False,
        )
        for name, advice in (("merge", 12), ("page out", 21), ("poison", 100), ("offline", 101))
    ),
    Attack(
        "ask whether a library is in the page cache",
        "import os; fd = os.open(os.__file__, os.O_RDONLY)\n"
        "said = os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)",
        ("ENOTSUP",),
        False,  # not every file system can tell
    ),
    Attack(
        "reserve space without writing",
        "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)\n"
        "fd = os.open('x', os.O_CREAT | os.O_RDWR)\n"
        "said = c.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(1 << 20)), ctypes.get_errno()",
        ("(-1, 95)",),
        False,  # not every file system can
    ),
    Attack(
        "lock a library",
        "import fcntl, os; first, second = open(os.__file__), open(os.__file__)\n"
        "fcntl.flock(first, fcntl.LOCK_EX); fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "said = 'nothing is locked'",
        ("nothing is locked",),
    ),
    Attack(
        "lock a library for one of its descriptors",
        "import fcntl, os, struct; file = open(os.__file__)\n"
        "said = fcntl.fcntl(file, 37, struct.pack('hhqqi4x', 0, 0, 0, 0, 0))  # F_OFD_SETLK",
        ("EINVAL",),
    ),
    Attack(
        "extended attribute",
        "import os; said = os.setxattr(secret, 'user.x', b'1')",
        ("ENOTSUP",),
    ),
    Attack(
        "namespace by clone",
        "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)\n"
        "number = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]\n"
        "said = c.syscall(number, 0x10000000 | 0x10000, 0, 0, 0, 0), ctypes.get_errno()",
        ("(-1, 1)",),
        False,
    ),
    Attack(
        "clone with its flags behind a pointer",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        "said = c.syscall(435, bytes(88), 88), ctypes.get_errno()",
        ("(-1, 38)",),
        False,
    ),
    Attack(
        "a call that came after the rules",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        "said = c.syscall(470), ctypes.get_errno()",
        ("(-1, 38)",),
        False,
    ),
)

ALL = (*FILES, *PROC, *OTHER_PROCESSES, *NETWORK, *KERNEL)
