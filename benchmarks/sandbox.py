"""What the sandbox costs: starting, stepping, calling back, crossing, and running code."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from statistics import fmean, median

from sanderling.errors import SandboxCrashed
from sanderling.sandbox import LocalPythonExecutor, Snapshot, create_interpreter

from .figures import Figure, show

LARGE = 10_000_000
_PAUSE = 0.02  # seconds
_LONG_PAUSE = 0.25  # seconds, after which each step has its copy
MOST_STEP, MOST_CALL, MOST_CROSSING = 0.15, 0.12, 30.0  # milliseconds
MOST_TIMES = 1 / 0.95
SERIES = 5
ROUNDS, TURNS, IN_A_ROW = 5, 2, 8
WORK = {
    "loop": """
        def run():
            total = 0
            for i in range(2_000_000): total += i * i % 7
        run()
    """,
    "recursion": """
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        fib(30)
    """,
    "strings": """
        words = [f"{i:06d}-{i % 7}" for i in range(150_000)]
        text = " ".join(sorted(words, key=lambda word: word[::-1])).upper().split()
    """,
    "numpy": """
        import numpy
        for i in range(50): total = float((numpy.arange(1_000_000) * 1.5 + i).sum())
    """,
}
_ECHO = """
import socket, sys
peer = socket.socket(fileno=int(sys.argv[1]))
while size := int.from_bytes(peer.recv(4), "little"):
    space = memoryview(bytearray(size))
    while space:
        space = space[peer.recv_into(space):]
    peer.sendall(b"x")
"""
_EXEC = """
import sys, time
namespace = {}
for line in sys.stdin:
    start = time.perf_counter()
    exec(compile(sys.argv[1], "code", "exec"), namespace)
    print((time.perf_counter() - start) * 1e3, flush=True)
"""
_STEP = """
import sys, time
from sanderling.errors import SandboxCrashed
from sanderling.sandbox import LocalPythonExecutor
with LocalPythonExecutor(["numpy"]) as python:
    for line in sys.stdin:
        start = time.perf_counter()
        python(sys.argv[1])
        print((time.perf_counter() - start) * 1e3, flush=True)
"""
_FORK = """
import os, statistics, time
taken = []
for _ in range(200):
    start = time.perf_counter()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    taken.append(time.perf_counter() - start)
print(statistics.median(taken) * 1e3)
"""
_COLD = """
import time
from sanderling.errors import SandboxCrashed
from sanderling.sandbox import LocalPythonExecutor
from sanderling.sandbox.lockdown import probe
probe()
start = time.perf_counter()
with LocalPythonExecutor() as python:
    python("None")
    print((time.perf_counter() - start) * 1e3)
"""
_CALLS = """
import statistics, time
medians = []
for _ in range(5):
    taken = []
    for number in range(200):
        start = time.perf_counter()
        add(number, 1)
        taken.append(time.perf_counter() - start)
    medians.append(statistics.median(taken))
min(medians) * 1e3
"""
_MANY_CALLS = """
import time
from concurrent.futures import ThreadPoolExecutor
start = time.perf_counter()
with ThreadPoolExecutor(8) as pool: sums = list(pool.map(add, range(1_000), range(1_000)))
assert sums == [2 * number for number in range(1_000)]
(time.perf_counter() - start) * 1e3
"""


def _ms(action: Callable[[], object], rounds: int) -> float:
    """The least of the medians of a few series: what else the machine does can only add."""
    medians = []
    for _ in range(min(SERIES, rounds)):
        taken = []
        for _ in range(max(1, rounds // SERIES)):
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
        medians.append(median(taken))
    return min(medians) * 1e3


def _rested(action: Callable[[], object], rounds: int) -> float:
    return median(_after_pause(lambda: _ms(action, 1)) for _ in range(rounds))


def _after_pause(measured: Callable[[], float]) -> float:
    """Leaves time before, as a model does: the sandbox makes its checkpoint then."""
    time.sleep(_PAUSE)
    return measured()


@contextlib.contextmanager
def _echo() -> Iterator[Callable[[bytes], None]]:
    """A process that reads and says so: the least that telling another one something costs."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-I", "-c", _ECHO, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

        def tell(data: bytes) -> None:
            ours.sendall(len(data).to_bytes(4, "little"))
            ours.sendall(data)
            ours.recv(1)

        try:
            tell(b"are you there?")
            yield tell
        finally:
            ours.sendall(bytes(4))
            process.wait()


def _told(script: str, rounds: int) -> float:
    """The median of what fresh interpreters print."""
    command = [sys.executable, "-c", script]
    return median(float(subprocess.check_output(command)) for _ in range(rounds))


def _start() -> list[Figure]:
    opened: list[float] = []
    closed: list[float] = []
    for _ in range(100):
        python = create_interpreter()
        opened.append(_ms(python.open, 1))
        closed.append(_ms(python.close, 1))
    bare = [sys.executable, "-I", "-c", "pass"]
    cold = _ms(lambda: subprocess.run(bare, check=True), 15)
    return [
        Figure("first sandbox of a process, one step", _told(_COLD, 9), "ms", cold),
        Figure("ready interpreter from the fork server", median(opened), "ms", _told(_FORK, 3)),
        Figure("its end, with its work folder", median(closed), "ms"),
    ]


def _snapshots() -> list[Figure]:
    """Snapshots, returns to them, and steps after a kill, beside a bare ``os.fork`` of as much."""
    figures = []
    for size, name in ((0, "nothing"), (100 << 20, "100 MB"), (1 << 30, "1 GB")):
        with LocalPythonExecutor(["os"], memory_bytes=8 << 30) as python:
            python(f"kept = bytearray({size}); kept[::4096] = bytes(len(kept[::4096]))")
            kept: list[Snapshot] = []
            made: list[float] = []
            restored: list[float] = []
            killed: list[float] = []
            for _ in range(9):
                time.sleep(_LONG_PAUSE)
                killed.append(_ms(lambda: _go_on_after_a_kill(python), 1))
                time.sleep(_PAUSE)
                made.append(_ms(lambda: kept.append(python.snapshot()), 1))  # noqa: B023
                time.sleep(_PAUSE)
                restored.append(_ms(lambda: python.restore(kept[-1]), 1))  # noqa: B023
                kept.pop().close()
            floor = _told(
                _FORK.replace("import os", f"kept = bytearray(b'x') * {size}\nimport os"), 1
            )
        figures += [
            Figure(f"snapshot of {name}", median(made), "ms", floor),
            Figure(f"return to a snapshot of {name}", median(restored), "ms", floor),
            Figure(f"step that ends its interpreter, and the next, {name}", median(killed), "ms"),
        ]
    return figures


def _go_on_after_a_kill(python: LocalPythonExecutor) -> None:
    with contextlib.suppress(SandboxCrashed):
        python("import os; os._exit(1)")
    python("None")


def _traffic() -> list[Figure]:
    large = bytes(LARGE)
    functions: dict[str, Callable[..., object]] = {"add": lambda a, b: a + b, "get": lambda: large}
    imports = ["concurrent"]
    with LocalPythonExecutor(imports, None, functions) as python, _echo() as tell:
        python(f"kept = bytes({LARGE})")
        ping, copy = _ms(lambda: tell(b"x" * 50), 500), _ms(lambda: tell(large), 15)
        with LocalPythonExecutor(restore_after_kill=False) as bare:
            empty = _ms(lambda: bare("None"), 500)
            paused = _rested(lambda: bare("None"), 100)
        rested = _rested(lambda: python("None"), 100)
        at_once = _ms(lambda: python("None"), 200)
        call = float(str(python(_CALLS).output))
        many = min(float(str(python(_MANY_CALLS).output)) for _ in range(SERIES))
        out, into = _rested(lambda: python("kept"), 15), _rested(lambda: python("got = get()"), 15)
    return [
        Figure("empty step, without checkpoints", empty, "ms", ping, MOST_STEP),
        Figure("the same after a pause of 20 ms", paused, "ms", ping),
        Figure("the same with a checkpoint, made in the pause", rested, "ms", ping),
        Figure("empty steps right after one another, by default", at_once, "ms", ping, MOST_STEP),
        Figure("tool call, as the code sees it", call, "ms", ping, MOST_CALL),
        Figure("1,000 tool calls from 8 threads", many, "ms", 1_000 * ping),
        Figure("10 MB of bytes out", out, "ms", copy, MOST_CROSSING),
        Figure("10 MB of bytes in", into, "ms", copy, MOST_CROSSING),
    ]


def _docker() -> list[Figure]:
    """A ready interpreter in a container, beside the image's own bare Python."""
    image = os.environ.get("SANDERLING_BENCH_IMAGE", "python:3.11-slim")
    options = ["--rm", "--network=none", "--pull=never", "--entrypoint=python3"]
    bare = ["docker", "run", *options, image, "-Ic", "pass"]
    try:
        subprocess.run(bare, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        print(f"(no Docker: no engine answers, or it has no image {image})")
        return []
    started: list[float] = []
    for _ in range(SERIES):
        python = create_interpreter("docker", image=image)
        started.append(_ms(python.open, 1))
        python.close()
    floor = _ms(lambda: subprocess.run(bare, check=True, capture_output=True), SERIES)
    return [Figure("ready interpreter in a container", median(started), "ms", floor)]


@contextlib.contextmanager
def _asked(script: str, source: str) -> Iterator[Callable[[], float]]:
    """A fresh interpreter that runs code each time it is asked, and tells the milliseconds."""
    command = [sys.executable, "-c", script, source]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        asking, telling = process.stdin, process.stdout
        if asking is None or telling is None:
            raise OSError("no pipes")

        def ask() -> float:
            print("again", file=asking, flush=True)
            return float(telling.readline())

        yield ask
        asking.close()


def _code(name: str, work: str) -> list[Figure]:
    """Runs the same code in the sandbox and by ``exec`` in a bare process; both keep variables.

    The two take turns, for other things that the machine does slow down both. Each round has
    processes of its own: how fast names are found depends on the seed of ``hash`` (by 10 % and more
    for a loop over global names, so this one is in a function).
    """
    source = f"{textwrap.dedent(work)}\nNone"
    outside: list[list[float]] = []
    inside: list[list[float]] = []
    for _ in range(ROUNDS):
        with _asked(_EXEC, source) as plain, _asked(_STEP, source) as step:
            plain(), step()
            for _ in range(TURNS):
                outside.append([plain() for _ in range(IN_A_ROW)])
                inside.append([step() for _ in range(IN_A_ROW)])
    fastest, floor = (min(map(min, rows)) for rows in (inside, outside))
    # Not each step in a row waits for a checkpoint: so the mean of a row.
    whole, whole_floor = (min(map(fmean, rows)) for rows in (inside, outside))
    row = f"the same, {IN_A_ROW} steps in a row, with checkpoints"
    return [
        Figure(f"code: {name}", fastest, "ms", floor, MOST_TIMES, goal_is_ratio=True),
        Figure(row, whole, "ms", whole_floor, MOST_TIMES, goal_is_ratio=True),
    ]


def measure() -> list[Figure]:
    """Returns all figures."""
    code = (figure for name, work in WORK.items() for figure in _code(name, work))
    return [*_start(), *_snapshots(), *_traffic(), *code, *_docker()]


def main() -> bool:
    """Prints the figures."""
    return show(
        "Sandbox (floor: a bare process, a bare fork, a bare socket pair, plain exec)", measure()
    )


if __name__ == "__main__":
    main()
