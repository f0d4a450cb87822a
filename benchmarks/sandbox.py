"""What the sandbox costs: starting, stepping, calling back, crossing, and running code."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from statistics import median

from sanderling.sandbox import LocalPythonExecutor

from .figures import Figure, show

LARGE = 10_000_000
MOST_MS = 0.3
MOST_TIMES = 1 / 0.9
WORK = {
    "loop": """
        total = 0
        for i in range(1_000_000): total += i * i % 7
    """,
    "recursion": """
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        fib(27)
    """,
    "strings": """
        words = [f"{i:05d}-{i % 7}" for i in range(60_000)]
        text = " ".join(sorted(words, key=lambda word: word[::-1])).upper().split()
    """,
    "numpy": """
        import numpy
        for i in range(10): total = float((numpy.arange(1_000_000) * 1.5 + i).sum())
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
code = compile(sys.argv[1], "code", "exec")
for line in sys.stdin:
    start = time.perf_counter()
    exec(code, {})
    print((time.perf_counter() - start) * 1e3, flush=True)
"""
_CALLS = """
import statistics, time
taken = []
for number in range(1_000):
    start = time.perf_counter()
    add(number, 1)
    taken.append(time.perf_counter() - start)
statistics.median(taken) * 1e3
"""


def _ms(action: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e3


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


def _start() -> Figure:
    def sandbox() -> None:
        with LocalPythonExecutor() as python:
            python("None")

    def bare() -> None:
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)

    sandbox()
    return Figure("cold start, one step, end", _ms(sandbox, 15), "ms", _ms(bare, 15))


def _traffic() -> list[Figure]:
    large = bytes(LARGE)
    functions: dict[str, Callable[..., object]] = {"add": lambda a, b: a + b, "get": lambda: large}
    with LocalPythonExecutor(additional_functions=functions) as python, _echo() as tell:
        python(f"kept = bytes({LARGE})")
        ping, copy = _ms(lambda: tell(b"x" * 50), 500), _ms(lambda: tell(large), 15)
        empty = _ms(lambda: python("None"), 500)
        call = float(str(python(_CALLS).output))
        out, into = _ms(lambda: python("kept"), 15), _ms(lambda: python("got = get()"), 15)
    return [
        Figure("empty step", empty, "ms", ping, MOST_MS),
        Figure("tool call, as the code sees it", call, "ms", ping, MOST_MS),
        Figure("10 MB of bytes out", out, "ms", copy),
        Figure("10 MB of bytes in", into, "ms", copy),
    ]


def _code(name: str, work: str) -> Figure:
    """Runs the same code in the sandbox and by ``exec`` in a bare process, turn by turn."""
    source = f"{textwrap.dedent(work)}\nNone"
    inside: list[float] = []
    outside: list[float] = []
    bare = subprocess.Popen(
        [sys.executable, "-I", "-c", _EXEC, source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with bare, LocalPythonExecutor(["numpy"]) as python:
        for _ in range(25):
            print("again", file=bare.stdin, flush=True)
            outside.append(float(bare.stdout.readline()) if bare.stdout else 0.0)
            inside.append(_ms(lambda: python(source), 1))
        if bare.stdin:
            bare.stdin.close()
    # The least of each: a ratio of medians would measure what else the machine does.
    least, floor = min(inside), min(outside)
    return Figure(f"code: {name}", least, "ms", floor, MOST_TIMES, goal_is_ratio=True)


def measure() -> list[Figure]:
    """Returns all figures."""
    return [_start(), *_traffic(), *(_code(name, work) for name, work in WORK.items())]


def main() -> bool:
    """Prints the figures."""
    return show("Sandbox (floor: a bare process, a bare socket pair, plain exec)", measure())


if __name__ == "__main__":
    main()
