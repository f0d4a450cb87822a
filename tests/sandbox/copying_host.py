"""A host whose sandboxes attack the copying of their own processes: `test_copying.py` runs it.

Each function is a scenario; an assertion that fails ends this process with a traceback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys

from sanderling.sandbox import _checkpoint as checkpoint
from sanderling.sandbox.backends import _fork_servers
from support.copying import CLONE, END, FORK, PARENT, copied, copyable, few, seconds_of, ticks
from support.hosts import scenario_of_host
from support.processes import children, fork_servers, lasting, offspring, sandboxes, watch
from support.sandbox import error, run, value


def no_more_processes_than_copies() -> None:
    """H1, H7: other flags than those of fork, and more forks than one."""
    with copyable() as python:
        value(python, "found = []")
        value(
            python,
            CLONE + "def other_flags():\n"
            f"    for flags in (0x11, 0x8011, 0x4111, 0x111, {FORK | 0x2000}, {FORK | 0x800000},\n"
            f"                  {FORK | 0x10000000}, {FORK | 0x20000000}, {FORK & ~0xFF},\n"
            f"                  {FORK | 0x4000}, {FORK & ~0x200000},\n"
            f"                  {FORK & ~0xFF | 9}, {FORK & ~0xFF | 19}):\n"
            "        found.append(clone(flags))\n"
            "os.register_at_fork(before=other_flags)",
        )
        copied(python)
        assert few(2)
        found = value(python, "found")
        assert len(found) >= 13
        assert {tuple(each) for each in found} == {(-1, 1)}, found  # EPERM
    assert lasting(sandboxes()) == set()
    with copyable() as python:
        code = (
            f"def raw():\n    found.append([clone({FORK | PARENT})[0], clone({FORK})[0]])\n"
            "    while found[-1][0] == 0: pass\n"
            "os.register_at_fork(before=raw)"
        )
        value(python, CLONE + "found = []\n" + code)
        for _ in range(3):
            copied(python)
            assert few(2)
        (first, second) = value(python, "found[-1]")
        assert first > 0 > second
        # The copy goes on in the loop of the code, which an interrupt ends.
        error(python, END)
        assert "exceeded" in error(python, "1")
    assert lasting(sandboxes()) == set()


def a_copy_runs_nothing_until_it_is_used() -> None:
    """H2."""
    with copyable() as python:
        value(
            python,
            "import os\n"
            "ran = []\n"
            "def burn():\n"
            "    open('ran', 'a').write('x')\n"
            "    ran.append(1)\n"
            "os.register_at_fork(after_in_child=burn)",
        )
        copied(python)
        kept = python.snapshot()
        templates = sandboxes()
        assert len(templates) == 3
        before = {pid: ticks(pid) for pid in templates}
        with copyable() as other:
            for _ in range(20):
                value(other, "sum(range(200_000))")
        assert {pid: ticks(pid) for pid in templates} == before
        assert value(python, "import os; os.listdir('.')") == []
        python.restore(kept)
        assert value(python, "ran") == [1]


def members_cannot_signal_each_other() -> None:
    """H3."""
    with copyable() as python:
        mine = value(python, "import os; os.getpid()")
        fork = python.fork()
        try:
            theirs = value(fork, "import os; os.getpid()")
            assert mine != theirs
            for target in (mine, -mine, 0, -1):
                for number in (signal.SIGCONT, signal.SIGSTOP, signal.SIGKILL, 0):
                    code = f"import os; os.kill({target}, {int(number)})"
                    assert "Error" in error(fork, code)
            code = f"libc.syscall(234 if number == 56 else 131, {mine}, {mine}, 18)"
            assert value(fork, CLONE + code) == -1
            assert "PermissionError" in error(python, f"import os; os.kill({theirs}, 18)")
            code = "import os, signal; signal.raise_signal(signal.SIGURG); os.kill(os.getpid(), 0)"
            value(python, code)
            value(fork, code)
        finally:
            fork.close()


def others_are_not_held_up() -> None:
    """H7: what a process does when it should be copied costs other sandboxes no time."""

    def serve_others() -> None:
        for _ in range(5):
            with copyable() as other:
                assert value(other, "1") == 1

    usual = seconds_of(serve_others)
    with copyable() as first, copyable() as second:
        value(first, "import os\nos.register_at_fork(before=lambda: os.read(os.pipe()[0], 1))")
        value(second, f"{CLONE}\nos.register_at_fork(before=lambda: clone(0x4111))")
        for python in (first, second):
            python._exchange._say(python._exchange._session.tools([]))
        # The copies are given up after three seconds. A busy machine needs longer for the rest.
        assert seconds_of(serve_others) < 2.5 + 4 * usual
    assert lasting(sandboxes()) == set()


def closing_waits_for_no_copy() -> None:
    """H16k."""
    never = "import os\nos.register_at_fork(before=lambda: os.read(os.pipe()[0], 1))"
    threads = (
        "import os, threading\n"
        "def forever():\n"
        "    while True:\n"
        "        try: os.fork()\n"
        "        except OSError: pass\n"
        "for _ in range(4): threading.Thread(target=forever, daemon=True).start()"
    )
    for code in (never, threads):
        with contextlib.ExitStack() as stack:
            plain, python = (stack.enter_context(copyable()) for _ in range(2))
            run(plain, "1")
            run(python, code)
            usual = seconds_of(plain.close)
            assert seconds_of(python.close) < 2.5 + 4 * usual, code
    assert lasting(sandboxes()) == set()


def channels_are_not_shared() -> None:
    """H15, H16e: a fork cannot speak for the interpreter that it was made of, nor the reverse."""
    tools = {"pay": lambda amount: amount}
    with copyable() as python:
        value(python, "import os, socket\nheld = [os.dup(3) for _ in range(20)]")
        assert "PermissionError" in error(
            python, "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [3])"
        )
        fork = python.fork()
        try:
            inodes = "[os.fstat(n).st_ino for n in (3, *held)]"
            before = value(python, inodes)
            assert len(set(before)) == 1
            alive = (
                "def alive(n):\n"
                "    try: return os.fstat(n).st_ino\n"
                "    except OSError: return 0\n"
                "[alive(n) for n in (3, *held)]"
            )
            after = value(fork, alive)
            assert after[0] not in (0, before[0])
            assert set(after[1:]) == {0}
            assert value(fork, "open('file', 'w').write('x')", tools) == 1
        finally:
            fork.close()
    # A copy that holds a duplicate of the channel does not hide the death of its interpreter.
    with copyable(timeout_seconds=None) as python:
        value(python, "import os; held = os.dup(3)")
        copied(python)
        assert "died" in error(python, END)


def nothing_outlives_the_fork_server() -> None:
    """H1: with and without a PID namespace; templates, forks and all."""
    with copyable() as python, contextlib.ExitStack() as stack:
        value(python, "import threading, time; x = 1")
        kept = [python.snapshot() for _ in range(2)]
        fork = python.fork()
        stack.callback(fork.close)
        busy = (
            "import threading\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
        )
        value(fork, busy)
        processes = sandboxes()
        assert len(processes) >= 5, processes
        ends = [stack.enter_context(watch(pid)) for pid in processes]
        for pid in fork_servers():
            os.kill(pid, signal.SIGKILL)
        assert all(end(10) for end in ends)
        assert len(kept) == 2


def nothing_outlives_the_host() -> None:
    """H1: the host ends without closing anything."""
    script = (
        "import sys, os\n"
        "sys.argv[1:] = ['', sys.argv[1]]\n"
        "from support.hosts import scenario_of_host\n"
        "scenario_of_host()\n"
        "from support.copying import copyable\n"
        "from support.sandbox import value\n"
        "with copyable() as python:\n"
        "    kept = python.snapshot()\n"
        "    fork = python.fork()\n"
        "    value(fork, 'x = 1')\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.read()\n"
        "    os._exit(0)\n"
    )
    for how in ("exits", "is killed"):
        host = subprocess.Popen(
            [sys.executable, "-c", script, sys.argv[2]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        with contextlib.ExitStack() as stack:
            left = offspring(host.pid)
            ends = []
            for pid in left:
                with contextlib.suppress(ProcessLookupError):  # one that was only passing
                    ends.append(stack.enter_context(watch(pid)))
            if how == "is killed":
                host.kill()
            host.communicate()
            assert len(ends) >= 4
            assert all(end(30) for end in ends), how


def a_fork_server_that_is_mute_is_replaced() -> None:
    _fork_servers._MUTE = 0.5
    with copyable() as first:
        value(first, "x = 1")
        mute = fork_servers()
        for pid in mute:
            os.kill(pid, signal.SIGSTOP)
        try:
            with copyable() as second:
                assert value(second, "2") == 2
            assert fork_servers() - mute
        finally:
            for pid in mute:
                os.kill(pid, signal.SIGCONT)
        assert value(first, "x") == 1


def copies_count_as_memory() -> None:
    """H1, H2: an interpreter with its copies takes no more memory than it may."""
    size = 150 << 20
    with copyable(memory_bytes=400 << 20, timeout_seconds=60) as python:
        kept = []
        told = ""
        for number in range(3):
            code = f"x = bytearray(b'{number}') * {size}"
            # The host looks ten times a second, or less often on a busy machine.
            result = run(python, f"{code}\nwhile True: pass" if number == 2 else code)
            if result.error is not None:
                told = str(result.error)
                break
            kept.append(python.snapshot())
        assert "memory" in told, told
        assert 1 <= len(kept) <= 2
        for snapshot in kept:
            snapshot.close()
        value(python, "del x; 1")


def no_foreign_process_is_left() -> None:
    """All of them are children of the fork server, and all are known to the host."""
    with copyable() as python:
        value(python, "import os\nos.register_at_fork(before=os.getpid)")
        for _ in range(3):
            copied(python)
        python.snapshot().close()
        for server in fork_servers():
            assert few(2)
            assert children(server) <= sandboxes()
    assert lasting(sandboxes()) == set()


if __name__ == "__main__":
    name = scenario_of_host()
    checkpoint.SHARE = 1e9  # steps follow one another faster than a model's: each gets its copy
    socket.setdefaulttimeout(None)
    if name:
        globals()[name]()
        print("done")
