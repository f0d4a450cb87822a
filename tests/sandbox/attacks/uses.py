"""Attempts to use up memory, disk, processes and time, or to end what runs the code."""

from sandbox.attacks.case import Case, Layer

_MIB = 1 << 20
_SMALL = {"memory_bytes": 512 * _MIB}
_LIMITS: tuple[Layer, ...] = ("limits",)
_CLOCK: tuple[Layer, ...] = ("clock",)
_SHORT = 0.5  # seconds


def _memory(number: tuple[str, ...], name: str, code: str, error: str = "MemoryError") -> Case:
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    return Case(
        name,
        number,
        f"said = 'through'\ntry:\n{body}\nexcept {error}: said = 'limited'\nsaid",
        "limited",
        _LIMITS,
        apart=False,
        options=_SMALL,
    )


def _time(number: tuple[str, ...], name: str, code: str) -> Case:
    return Case(name, number, code, "limited", _CLOCK, apart=False, seconds=_SHORT)


MEMORY = (
    _memory(("64", "use: memory"), "8 GB in one piece", "x = bytearray(8 << 30)"),
    _memory(
        ("64", "use: memory"), "many pieces", "x = []\nwhile True: x.append(bytearray(4 << 20))"
    ),
    _memory(("64",), "a list that doubles", "x = [0]\nwhile True: x += x"),
    _memory(("64",), "a text of 10 GB", "x = 'a' * 10**10"),
    _memory(
        ("64",),
        "shared memory",
        "import mmap; x = mmap.mmap(-1, 1 << 30)",
        "(OSError, MemoryError)",
    ),
    _memory(("65",), "a shift of 64 billion bits", "x = 1 << (1 << 36)"),
    _memory(
        ("74",),
        "gigabytes of zeros, unpacked",
        """
import zlib
pack = zlib.compressobj(1)
small = b"".join(pack.compress(bytes(1 << 20)) for _ in range(700)) + pack.flush()
x = zlib.decompress(small)
""",
    ),
    _memory(
        ("63", "use: threads"),
        "threads without end",
        """
import threading
stop = threading.Event(); threads = []
try:
    while len(threads) < 5000:
        threads.append(threading.Thread(target=stop.wait)); threads[-1].start()
finally:
    stop.set()
""",
        "RuntimeError",
    ),
    Case(
        "a picture of 10 gigapixels",
        ("56",),
        """
from PIL import Image
try: Image.new("RGB", (100_000, 100_000)); said = "through"
except (MemoryError, Image.DecompressionBombError): said = "limited"
said
""",
        "limited",
        _LIMITS,
        apart=False,
        options=_SMALL,
        needs=("PIL",),
    ),
    Case(
        "sockets full of bytes",
        ("64",),
        """
import socket
pairs, sent = [], 0
try:
    while True:
        pairs.append(socket.socketpair()); pairs[-1][0].setblocking(False)
        try:
            while True: sent += pairs[-1][0].send(bytes(65536))
        except BlockingIOError: pass
except OSError as error: print(error, sent)
"limited" if sent < 256 << 20 else "through"
""",
        "limited",
        _LIMITS,
        apart=False,
    ),
)

DISK = (
    Case(
        "a file of 2 GB",
        ("73", "use: file"),
        """
try: open("big", "wb").truncate(2 << 30); said = "through"
except OSError as error: said = "limited" if error.errno == 27 else str(error)
said
""",
        "limited",
        _LIMITS,
        options={"file_bytes": 4 * _MIB},
    ),
    Case(
        "a disk filled, with a quota",
        ("73", "use: files"),
        """
try:
    for n in range(40): open(f"f{n}", "wb").write(bytes(1 << 20))
    said = "through"
except OSError as error: said = "limited" if error.errno == 28 else str(error)
said
""",
        "limited",
        ("namespaces",),
        options={"workdir_bytes": 8 * _MIB, "workdir_in_memory": True},
        apart=False,
    ),
    Case(
        "a hundred thousand files, with a quota",
        ("73", "use: files"),
        """
try:
    for n in range(100_000): open(f"f{n}", "wb").close()
    said = "through"
except OSError as error: said = "limited" if error.errno == 28 else str(error)
said
""",
        "limited",
        ("namespaces",),
        options={"workdir_bytes": 8 * _MIB, "workdir_in_memory": True},
        apart=False,
    ),
    Case(
        "a disk filled by many files, without a tmpfs",
        ("73", "use: files"),
        """
import time
for n in range(1_000):
    open(f"f{n}", "wb").write(bytes(1 << 20))
    time.sleep(0.01)
"reached"
""",
        "limited",
        _CLOCK,
        apart=False,
        options={"workdir_bytes": 4 * _MIB},
    ),
    Case(
        "descriptors without end",
        ("64",),
        """
found = []
try:
    while len(found) < 5000: found.append(open("/dev/null"))
    said = "through"
except OSError as error: said = "limited" if error.errno == 24 else str(error)
del found
said
""",
        "limited",
        _LIMITS,
        apart=False,
    ),
)

TIME = (
    _time(("use: time",), "a loop without end", "while True: pass"),
    _time(("67", "use: time"), "a sleep", "import time; time.sleep(60)"),
    _time(("69", "use: time"), "backtracking", "import re; re.match('(a+)+$', 'a' * 40 + 'b')"),
    _time(("65", "use: time"), "a power", "x = 10 ** 10 ** 8"),
    _time(
        ("65",),
        "a long number's text",
        """
import sys
sys.set_int_max_str_digits(0)
x = str(7 ** (4 * 10 ** 6))
""",
    ),
    _time(
        ("66", "use: no interrupt"),
        "a sum that never looks up",
        """
import itertools
sum(itertools.repeat(1))
""",
    ),
    _time(
        ("66",), "a range consumed in C", "import collections; collections.deque(iter(int, 1), 0)"
    ),
    _time(
        ("68", "use: no interrupt"),
        "the interrupt swallowed",
        """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    ),
    _time(
        ("68",),
        "a finally that never ends",
        """
try:
    while True: pass
finally:
    while True: pass
""",
    ),
    _time(
        ("68", "use: no interrupt"),
        "the signal blocked, and its handler gone",
        """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True: pass
""",
    ),
    _time(
        ("67",),
        "a thread waited for that never ends",
        """
import threading
lock = threading.Lock(); lock.acquire()
threading.Thread(target=lock.acquire).start()
lock.acquire()
""",
    ),
    Case(
        "native work that looks at nothing",
        ("66", "use: native work"),
        """
import numpy
x = numpy.random.rand(3000, 3000)
while True: x = x @ x
""",
        "limited",
        _CLOCK,
        apart=False,
        seconds=_SHORT,
        needs=("numpy",),
    ),
    Case(
        "processor time, where it is limited",
        ("66",),
        "while True: pass",
        "limited",
        _CLOCK,
        apart=False,
        options={"cpu_seconds": 1},
    ),
)

ENDS = (
    _memory(("70", "use: stack"), "recursion", "def f(): f()\nf()", "RecursionError"),
    _memory(
        ("70",),
        "source nested too deep",
        """
for code in ("(" * 200_000 + ")" * 200_000, "-" * 1_000_000 + "1", "a" + ".a" * 100_000):
    try: compile(code, "x", "eval")
    except (SyntaxError, MemoryError, RecursionError) as error: print(type(error).__name__)
import ast
ast.literal_eval("[" * 5000 + "]" * 5000)
""",
        "(SyntaxError, MemoryError, RecursionError)",
    ),
    Case(
        "nested source as the step itself",
        ("70",),
        ("x = " + "[" * 150 + "]" * 150 + "\n", "-" * 60_000 + "1", "'limited'"),
        "limited",
        ("process",),
        apart=False,
    ),
    Case(
        "the C stack overflows",
        ("70", "use: crash"),
        """
import functools, sys
sys.setrecursionlimit(10 ** 9)
x = lambda: 0
for _ in range(10 ** 6): x = functools.partial(x)
repr(x)
x()
class Deep:
    def __repr__(self): return repr(self)
repr(Deep())
import ctypes; ctypes.string_at(0)
""",
        "ended",
        ("restart",),
        apart=False,
    ),
    *(
        Case(name, ("use: crash",), code, "ended", ("restart",), apart=False)
        for name, code in {
            "a segmentation fault": "import ctypes; ctypes.string_at(0)",
            "os._exit": "import os; os._exit(0)",
            "abort": "import os; os.abort()",
            "kill oneself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "a signal without a name": "import os; os.kill(os.getpid(), 50)",
            "close the descriptor to the host": "import os; os.close(3)",
        }.items()
    ),
    Case(
        "sys.exit, and a final print at exit",
        ("use: exits",),
        """
import atexit, sys, threading
atexit.register(lambda: note("late"))
threading._register_atexit(lambda: note("late"))
print("reached")
sys.exit(3)
""",
        "contained",
        ("process",),
    ),
    Case(
        "an exception that cannot be shown",
        ("use: exits", "18"),
        """
class Bad(BaseException):
    def __str__(self): raise self
    __repr__ = __str__
    def __getattribute__(self, name): raise self
print("reached")
raise Bad
""",
        "contained",
        ("process",),
    ),
    Case(
        "hundreds of megabytes printed",
        ("75", "use: output"),
        """
line = "x" * (1 << 20)
for _ in range(200): print(line)
import os
for number in (1, 2): os.write(number, b"x" * (1 << 20))
"reached"
""",
        "contained",
        ("process",),
    ),
    Case(
        "one line without an end, and binary junk",
        ("75",),
        """
import sys
for _ in range(2000): sys.stdout.write("\\x00\\udc80\\x1b" * 1000)
"reached"
""",
        "contained",
        ("process",),
    ),
)

CASES = (*MEMORY, *DISK, *TIME, *ENDS)
