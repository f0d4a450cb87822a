"""A host whose sandboxes spoil their copies, or try to reach each other: `test_copying.py` runs it.

Each function is a scenario; an assertion that fails ends this process with a traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling.errors import SandboxError
from sanderling.sandbox import _checkpoint as checkpoint
from support.copying import CLONE, END, FORK, PARENT, copied, copyable, few
from support.hosts import scenario_of_host
from support.processes import descriptors, fork_servers, lasting, offspring, sandboxes
from support.sandbox import run, value

if TYPE_CHECKING:
    from sanderling.sandbox._remote import RemoteInterpreter

HOOKS = ("before", "after_in_parent", "after_in_child")
# What a process may do as it is copied, instead of being copied.
SPOILS = {
    "ends": "os._exit(1)",
    "is killed": "os.kill(os.getpid(), 9)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "closes all": "os.closerange(0, 64)",
    "shuts its channel": "import socket; socket.socket(fileno=3).shutdown(2)",
    "writes to all": "[write(n, bytes(4_000)) for n in range(4, 64) for _ in range(2)]",
    "sends descriptors": "[send(n) for n in range(64)]",
    "forks": "[fork() for _ in range(50)]",
    "forks with a thread": "threading.Thread(target=fork).start(); fork()",
    "asks again": "[ask() for _ in range(50)]",
    "raises": "raise SystemExit",
}
HELPERS = f"""
{CLONE}
import signal, socket, struct, threading
pair = socket.socketpair()
def quietly(function):
    def call(*arguments):
        try: return function(*arguments)
        except (OSError, RuntimeError): return None
    return call
write = quietly(os.write)
send = quietly(lambda n: socket.send_fds(socket.socket(fileno=n), [struct.pack("i", 11)], [0] * 60))
ask = quietly(lambda: os.kill(0x7FFFFFFF, 9))
@quietly
def fork():
    for flags in ({FORK}, {FORK | PARENT}, 0x11): clone(flags)
    os.fork()
"""


def copies_that_are_spoilt() -> None:
    """A process that does something else than to be copied loses its copy, or itself."""
    with copyable() as witness:
        value(witness, "kept = 1")
        for hook, code in itertools.product(HOOKS, SPOILS.values()):
            with copyable() as python:
                value(python, f"{HELPERS}\ndef spoil():\n    {code}\nmine = os.getpid()")
                run(python, f"os.register_at_fork({hook}=spoil)")
                copied(python)
                assert few(4), (hook, code)
                for step in (END, "1"):  # the copy is put to use
                    run(python, step)
                after = run(python, "1 + 1")
                assert after.output == 2 or after.error is not None, (hook, code)
        assert value(witness, "kept") == 1
    assert lasting(sandboxes()) == set()


def copies_that_are_asked_for_without_end() -> None:
    """Threads that ask for copies, fork and signal without end hold nobody else up."""
    flood = (
        "def forever():\n"
        "    while True: ask(); fork()\n"
        "for _ in range(12): threading.Thread(target=forever, daemon=True).start()"
    )
    folders = (
        "def forever(n):\n"
        "    while True: quietly(os.makedirs)(f'{n}/' + 'd/' * 50)\n"
        "for n in range(4): threading.Thread(target=forever, args=(n,), daemon=True).start()"
    )
    servers = fork_servers()
    for code in (flood, folders):
        with contextlib.ExitStack() as stack:
            python = stack.enter_context(copyable())
            value(python, HELPERS)
            run(python, code)
            fork = stack.enter_context(contextlib.closing(python.fork()))
            run(fork, code)
            began = time.monotonic()
            for _ in range(3):
                with copyable() as other:
                    assert value(other, "1 + 1") == 2
            began_to_close = time.monotonic()
            assert began_to_close - began < 30
        assert time.monotonic() - began_to_close < 30  # five for each folder, on a machine at rest
    assert lasting(sandboxes()) == set()
    assert not servers or fork_servers() == servers


def another_sandbox_is_out_of_reach() -> None:
    """Neither its files nor its processes; and no process holds what the host does."""
    os.environ["HOST_SECRET"] = secret = "canary-" + os.urandom(8).hex()
    with copyable() as one, copyable() as other, contextlib.closing(other.fork()) as fork:
        kept = other.snapshot()
        value(other, "import os; open('mine', 'w').write('mine'); x = 1")
        value(one, f"{CLONE}\nimport fcntl, socket")
        numbers = [value(python, "import os; os.getpid()") for python in (other, fork)]
        numbers += sandboxes() | offspring()
        folders = [value(python, "os.getcwd()") for python in (other, fork)]
        reads = [f"open({folder + '/mine'!r}).read()" for folder in folders]
        reads += [f"os.listdir({folder!r})" for folder in (*folders, tempfile.gettempdir())]
        reads += [f"os.chdir({folder!r}) or open('mine').read()" for folder in folders]
        for number in set(numbers) - {value(one, "os.getpid()")}:
            names = (
                "environ mem maps cmdline status stat wchan root/etc/passwd cwd/mine fd/3 net/unix"
            )
            reads += [f"open('/proc/{number}/{name}', 'rb').read(1)" for name in names.split()]
            reads += [
                f"os.kill({number}, 0)",
                f"os.pidfd_open({number})",
                f"os.sched_setaffinity({number}, {{0}})",
                f"os.setpriority(os.PRIO_PROCESS, {number}, 19)",
            ]
        code = "got = []\n" + "".join(
            f"try: {each}; got.append({each!r})\nexcept OSError: pass\n" for each in reads
        )
        assert value(one, f"{code}\ngot") == []
        lock = "file = open(os.__file__)\nfcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)"
        for python in (one, other):  # both get what is no lock
            value(python, f"import fcntl, os\n{lock}")
        told = []
        for pid, name in itertools.product(offspring(), ("environ", "cmdline")):
            with contextlib.suppress(OSError):  # one that was only passing
                told.append(Path(f"/proc/{pid}/{name}").read_bytes())
        assert len(told) >= 6
        assert not any(secret.encode() in text for text in told)
        other.restore(kept)
    assert lasting(sandboxes()) == set()


def lives_that_are_raced() -> None:
    """Interrupts, snapshots, forks and closes from threads leave nothing behind."""
    with copyable() as first:
        value(first, "1")
    fork_servers()
    before, folders = descriptors(), set(Path(tempfile.gettempdir()).iterdir())
    steps = (
        "x = [0] * 10_000",
        "while True: pass",
        END,
        "import ctypes; ctypes.string_at(0)",
        "import os; os.close(3)",
        "import os; os.write(3, bytes(64))",
        "import threading; threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()",
        "import os; os.register_at_fork(before=lambda: os._exit(1))",
    )
    odd: list[BaseException] = []

    def live(seed: int) -> None:
        chance = random.Random(seed)
        with contextlib.suppress(SandboxError), copyable(timeout_seconds=0.05) as python:
            others = [threading.Thread(target=race, args=(python, seed + n)) for n in (1, 2)]
            for thread in others:
                thread.start()
            for _ in range(8):
                with contextlib.suppress(SandboxError, RuntimeError):
                    run(python, chance.choice(steps))
            for thread in others:
                thread.join()

    def race(python: RemoteInterpreter, seed: int) -> None:
        chance = random.Random(seed)
        kept: list[Any] = []
        for _ in range(12):
            try:
                match chance.randrange(5):
                    case 0:
                        kept.append(python.snapshot())
                    case 1 if kept:
                        python.restore(chance.choice(kept))
                    case 2:
                        with contextlib.closing(python.fork()) as fork:
                            run(fork, chance.choice(steps))
                    case 3 if seed % 3 == 0:
                        python.close()
                    case _:
                        python.interrupt()
            except (SandboxError, RuntimeError):
                continue
            except BaseException as unexpected:
                odd.append(unexpected)
                raise

    for seed in range(0, 30, 10):
        live(seed)
    assert odd == []
    assert lasting(sandboxes()) == set()
    assert descriptors() <= before
    assert set(Path(tempfile.gettempdir()).iterdir()) <= folders


if __name__ == "__main__":
    name = scenario_of_host()
    checkpoint.SHARE = 1e9  # steps follow one another faster than a model's: each gets its copy
    if name:
        globals()[name]()
        print("done")
