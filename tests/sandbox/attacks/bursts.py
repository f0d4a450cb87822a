"""Attempts to use up disk, threads and kernel memory in steps too short to be watched."""

from sandbox.attacks.case import Case, Layer

_MIB = 1 << 20
_CLOCK: tuple[Layer, ...] = ("clock",)
_FOLDER = {"workdir_bytes": 4 * _MIB, "workdir_files": 100}
_THREADS = {"max_threads": 16}
_NEXT = "import time; time.sleep(0.3); 'through'"
_SLEEPERS = """
import ctypes
libc = ctypes.CDLL(None)
libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
sleep, minute, thread = ctypes.cast(libc.sleep, ctypes.c_void_p), 60, ctypes.c_ulong()
def start(count):
    for made in range(count):
        if libc.pthread_create(ctypes.byref(thread), None, sleep, minute): return made
    return count
"""

CASES = (
    Case(
        "space that is reserved",
        ("132",),
        """
import os
for n in range(12):
    file = os.open(f"f{n}", os.O_CREAT | os.O_RDWR)
    call("fallocate", file, 0, 0, 256 << 20)
"through"
""",
        "refused",
        ("seccomp",),
        apart=False,
        options=_FOLDER,
    ),
    Case(
        "space that is reserved for files without names",
        ("132",),
        """
import os
for n in range(12):
    file = os.open(".", os.O_TMPFILE | os.O_RDWR)
    call("fallocate", file, 0, 0, 256 << 20)
"through"
""",
        "refused",
        ("seccomp",),
        apart=False,
        options=_FOLDER,
    ),
    Case(
        "bytes of many short steps",
        ("133", "use: files"),
        (
            "n = 0",
            *["open(f'f{n}', 'wb').write(bytes(8 << 20)); n += 1"] * 20,
            _NEXT,
        ),
        "limited",
        _CLOCK,
        apart=False,
        options=_FOLDER,
    ),
    Case(
        "files of many short steps",
        ("133", "use: files"),
        (
            "n = 0",
            *["for n in range(n, n + 30): open(f'f{n}', 'w').close()"] * 20,
            _NEXT,
        ),
        "limited",
        _CLOCK,
        apart=False,
        options=_FOLDER,
    ),
    Case(
        "threads that Python does not know of",
        ("63", "use: threads"),
        _SLEEPERS + "import time\nprint(start(4_000))\ntime.sleep(5)\n'through'",
        "limited",
        _CLOCK,
        apart=False,
        options=_THREADS,
    ),
    Case(
        "threads of a short step",
        ("133", "use: threads"),
        (_SLEEPERS, "start(600)", _NEXT),
        "limited",
        _CLOCK,
        apart=False,
        options=_THREADS,
    ),
    Case(
        "names that are not there",
        ("135", "use: memory"),
        """
import os
for n in range(20_000): os.path.exists(f"no-such-file-{n}")
"reached"
""",
        "contained",
        ("process",),
        apart=False,
    ),
)
