"""What one run leaves for the next, and what no layer stops."""

from sandbox.attacks.case import Case

CASES = (
    Case(
        "files and variables left for the next one",
        ("110",),
        """
import os, random, sys
random.seed(1)
open("left", "w").write("x")
os.environ["LEFT"] = "x"
sys.left = "x"
print("reached")
"reached"
""",
        "contained",
        ("process",),
        fresh="""
import os, sys
left = os.listdir(".") or os.environ.get("LEFT") or hasattr(sys, "left") or "secret" in globals()
"left over" if left else "clean"
""",
    ),
    Case(
        "the same random numbers in each interpreter",
        ("110",),
        """
import random
open("first", "w").write(str(random.getrandbits(64)))
print("reached")
"reached"
""",
        "contained",
        ("process",),
        fresh="""
import random, sys
"clean" if sys.flags.hash_randomization and random.getrandbits(64) else "same"
""",
    ),
    Case(
        "a clock fine enough to time caches",
        ("111",),
        """
import time
ticks = {time.perf_counter_ns() for _ in range(1000)}
assert len(ticks) > 100
"reached"
""",
        "remains",
        (),
        apart=False,
    ),
    Case(
        "paths of the host, and how busy it is",
        ("111",),
        """
import os, sys
print(sys.executable, sys.prefix, os.getcwd(), os.uname())
print(open("/proc/stat").readline(), open("/proc/meminfo").readline())
"reached"
""",
        "remains",
        (),
        apart=False,
    ),
    Case(
        "a thread that goes on between steps",
        ("79", "wire: leftover threads"),
        (
            """
import threading
ticks, stop = [], threading.Event()
def tick():
    while not stop.wait(0.01): ticks.append(1)
threading.Thread(target=tick, daemon=True).start()
""",
            """
import time
before = len(ticks)
time.sleep(0.2)
assert len(ticks) > before
stop.set()
"reached"
""",
        ),
        "remains",
        (),
        apart=False,
    ),
    Case(
        "the next step's result, told in advance",
        ("77", "wire: forgery"),
        (
            """
fields = {"v": None, "text": "reached", "error": None, "threads": 0, "interrupted": False}
forge("done", id=step(), **fields)
forge("done", id=step() + 1, **fields)
""",
            "'what this step really comes to'",
        ),
        "remains",
        (),
        apart=False,
    ),
    Case(
        "the processor burnt up to the time limit",
        ("66",),
        """
import time
until = time.process_time() + 0.5
while time.process_time() < until: pass
"reached"
""",
        "remains",
        (),
        apart=False,
    ),
    Case(
        "files that are removed, and live on in mappings",
        ("73", "use: files"),
        """
import ctypes, os
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
for _ in range(64):
    file = os.open("file", os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(1 << 20))
    assert libc.mmap(None, 4096, 1, 2, file, 0) != 2 ** 64 - 1
    os.unlink("file")
    os.close(file)
"reached"
""",
        "remains",
        (),
        apart=False,
        options={"workdir_bytes": 4 << 20, "open_files": 16},
    ),
)
