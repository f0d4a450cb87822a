"""Attempts on other processes, and to start some."""

from sandbox.attacks.case import Case, Layer

_EITHER: tuple[Layer, ...] = ("landlock", "seccomp")
_ALL_THREE: tuple[Layer, ...] = ("landlock", "namespaces", "seccomp")
_PROC: tuple[Layer, ...] = ("landlock", "namespaces")
_FILTER: tuple[Layer, ...] = ("seccomp",)

CASES = (
    Case(
        "secrets in the environment",
        ("85", "host: inheritance"),
        "import os; print(dict(os.environ), dict(os.environb)); 'refused'",
        layers=("process",),
    ),
    Case(
        "one's own environment by /proc",
        ("85", "host: list"),
        "print(open('/proc/self/environ').read()); 'through'",
        layers=_PROC,
    ),
    Case(
        "the host's environment by /proc",
        ("85", "host: environ"),
        "print(open(f'/proc/{host}/environ').read())",
        layers=_PROC,
    ),
    Case(
        "inherited descriptors",
        ("86", "host: inheritance"),
        """
import os
found = []
for number in range(5, 4096):
    try: found.append(os.fstat(number)); print(os.pread(number, 999, 0))
    except OSError: pass
"through" if found else "refused"
""",
        layers=("process",),
    ),
    Case(
        "one's own descriptors by /proc",
        ("86",),
        "import os; [os.readlink(f'/proc/self/fd/{n}') for n in range(4)]; 'through'",
        layers=("namespaces",),
    ),
    Case(
        "the host's memory by /proc",
        ("87", "host: memory"),
        """
with open(f"/proc/{host}/mem", "rb", 0) as memory:
    memory.seek(memory_at); print(memory.read(memory_size))
""",
        layers=_PROC,
    ),
    Case(
        "the host's memory written by /proc",
        ("87", "host: memory"),
        """
with open(f"/proc/{host}/mem", "rb+", 0) as memory:
    memory.seek(memory_at); memory.write(b"X")
""",
        layers=_PROC,
    ),
    Case(
        "ptrace attach to the victim",
        ("87", "host: trace"),
        "call('ptrace', 0x4206, victim, 0, 0); 'through'",
        layers=_ALL_THREE,
    ),
    Case(
        "process_vm_readv of the host",
        ("87", "host: trace"),
        """
import ctypes, struct
space = ctypes.create_string_buffer(memory_size)
ours = struct.pack("QQ", ctypes.addressof(space), memory_size)
call("process_vm_readv", host, ours, 1, struct.pack("QQ", memory_at, memory_size), 1, 0)
print(space.value)
""",
        layers=_ALL_THREE,
    ),
    Case(
        "process_vm_writev of the host",
        ("87", "host: trace"),
        """
import ctypes, struct
space = ctypes.create_string_buffer(b"X")
ours = struct.pack("QQ", ctypes.addressof(space), 1)
call("process_vm_writev", host, ours, 1, struct.pack("QQ", memory_at, 1), 1, 0)
""",
        layers=_ALL_THREE,
    ),
    Case(
        "a descriptor of the host, by pidfd_getfd",
        ("86", "87"),
        """
import os
taken = call("pidfd_getfd", call("pidfd_open", host, 0), 0, 0)
os.fstat(taken); "through"
""",
        layers=_ALL_THREE,
    ),
    Case(
        "list the processes of the machine",
        ("host: list",),
        "import os; 'through' if str(host) in os.listdir('/proc') else 'refused'",
        layers=_PROC,
    ),
    *(
        Case(f"{name} the victim", ("88", "host: signals"), code, layers=_EITHER)
        for name, code in {
            "kill": "import os; os.kill(victim, 15)",
            "tkill": "call('tkill', victim, 15)",
            "sigqueue": (
                "import struct\n"
                "call('rt_sigqueueinfo', victim, 15, struct.pack('iii', 15, 0, -1) + bytes(116))"
            ),
            "signal by pidfd": (
                "call('pidfd_send_signal', call('pidfd_open', victim, 0), 15, 0, 0)"
            ),
        }.items()
    ),
    Case(
        "kill the host, its group, and everybody",
        ("88", "host: signals"),
        """
import os
for attempt in (lambda: os.kill(host, 9), lambda: os.killpg(os.getpgid(host), 9)):
    try: attempt()
    except OSError as error: print(error)
    else: print("through")
os.kill(-1, 9)
""",
        layers=_EITHER,
        apart=False,
    ),
    Case(
        "let a descriptor's owner be signalled",
        ("88", "host: owner signals"),
        """
import fcntl, os, socket
a, b = socket.socketpair()
fcntl.fcntl(a, 10, 15)  # F_SETSIG
fcntl.fcntl(a, fcntl.F_SETOWN, victim)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
b.send(b"x")
"refused"
""",
        layers=_EITHER,
    ),
    Case(
        "read the limits of the host",
        ("host: limits",),
        "import resource; resource.prlimit(host, resource.RLIMIT_AS); 'through'",
        layers=_FILTER,
    ),
    Case(
        "change the limits of the victim",
        ("host: limits",),
        "import resource; resource.prlimit(victim, resource.RLIMIT_CORE, (0, 0))",
        layers=_FILTER,
    ),
    Case(
        "the victim's processors",
        ("88", "host: scheduling"),
        "import os; os.sched_setaffinity(victim, {min(os.sched_getaffinity(0))})",
        layers=_FILTER,
    ),
    Case(
        "the victim's priority",
        ("88", "host: scheduling"),
        "import os; os.setpriority(os.PRIO_PROCESS, victim, 19)",
        layers=_FILTER,
    ),
    Case(
        "one's own program and root by /proc",
        ("89",),
        """
try: open("/proc/self/exe", "r+b")
except OSError as error: print(error)
print(open("/proc/self/root" + secret_file).read())
""",
        layers=_PROC,
    ),
    Case(
        "a shell, by every name",
        ("61", "84", "kernel: programs"),
        """
import os, pty
shell = f"echo planted > {outside}/shell"
attempts = {
    "system": lambda: os.system(shell),
    "popen": lambda: os.popen(shell).read(),
    "spawn": lambda: os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", shell], {}), 0),
    "alias": lambda: getattr(__import__("o" + "s"), "sys" + "tem")(shell),
}
for name, attempt in attempts.items():
    try: attempt()
    except OSError as error: print(name, error)
"refused"
""",
        layers=_ALL_THREE,
    ),
    Case(
        "subprocess, and a worker process",
        ("61", "kernel: programs"),
        """
import multiprocessing, subprocess
try:
    worker = multiprocessing.get_context("fork").Process(target=print)
    worker.start(); worker.join()
except OSError as error: print(error)
subprocess.run(["/bin/sh", "-c", f"echo planted > {outside}/shell"])
""",
        layers=_ALL_THREE,
    ),
    Case(
        "a pseudo-terminal with a shell",
        ("61",),
        "import pty; pty.spawn(['/bin/true'])",
        layers=("landlock", "namespaces", "seccomp"),
        apart=False,
    ),
    Case(
        "a program without a file",
        ("60", "kernel: objects"),
        """
import os
program = os.memfd_create("x")
os.write(program, b"#!/bin/sh\\n")
call("execveat", program, b"", 0, 0, 0x1000)
""",
        layers=_FILTER,
        apart=False,
    ),
    Case(
        "memory without a file",
        ("60",),
        "import os; os.memfd_create('x'); 'through'",
        layers=_FILTER,
    ),
    Case(
        "a native library of one's own",
        ("58",),
        """
import ctypes, os, shutil
source = os.path.realpath(ctypes.util.__file__) if hasattr(ctypes, "util") else os.__file__
import _ctypes
with open(_ctypes.__file__, "rb") as found: data = found.read()
with open("mine.so", "wb") as made: made.write(data)
try: ctypes.CDLL(os.path.abspath("mine.so"))
except OSError as error: print(error)
print(use(os))
""",
        "contained",
        ("together",),
    ),
    Case(
        "the C library itself",
        ("57",),
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.system(f"echo planted > {outside}/libc".encode())
if (fd := libc.open(secret_file.encode(), 0)) >= 0:
    print(os.read(fd, 999))
libc.kill(victim, 15)
libc.utimes(secret_file.encode(), None)
"reached"
""",
        "contained",
        ("together",),
    ),
    Case(
        "machine code in memory that may be written and run",
        ("59", "44"),
        """
import ctypes, mmap, os
page = mmap.mmap(-1, 4096, prot=7)
# x86-64: mov eax, 57; syscall; ret (fork) / aarch64: mov x8, 220; mov x0, 17; svc 0; ret
code = "b8390000000f05c3" if os.uname().machine == "x86_64" else "881b80d2200280d2010000d4c0035fd6"
page.write(bytes.fromhex(code))
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
result = ctypes.CFUNCTYPE(ctypes.c_long)(address)()
if result == 0: os._exit(0)
"through" if result > 0 else "refused"
""",
        layers=_FILTER,
        apart=False,
    ),
    Case(
        "a daemon that outlives the run",
        ("62", "kernel: processes"),
        """
import os, signal
try: os.setsid()
except OSError as error: print(error)
if os.fork() == 0:
    os.close(3); signal.pause()
"through"
""",
        layers=_FILTER,
        apart=False,
    ),
    Case(
        "which process ids are in use",
        ("111",),
        """
import os
print(os.getpgid(victim), os.getpriority(os.PRIO_PROCESS, victim))
"through"
""",
        layers=("namespaces",),
        apart=False,
    ),
    Case(
        "outlive the host",
        ("62",),
        "call('prctl', 1, 0, 0, 0, 0); 'through'",
        layers=_FILTER,
    ),
    *(
        Case(f"a process by {name}", ("63", "kernel: processes"), code, layers=_FILTER, apart=False)
        for name, code in {
            "fork, many times": "import os\nfor _ in range(50): os.fork() or os._exit(0)",
            "vfork": "call('clone', 0x4111, 0, 0, 0, 0); 'through'",
            "clone": "call('clone', 17, 0, 0, 0, 0); 'through'",
            "clone with a namespace": "call('clone', 0x10000011, 0, 0, 0, 0); 'through'",
            "clone3": (
                "import struct\n"
                "said = reaches('clone3', struct.pack('QQQQQQQQ', 0, 0, 0, 0, 17, 0, 0, 0), 64)\n"
                "said"
            ),
        }.items()
    ),
)
