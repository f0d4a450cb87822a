"""Snapshots, forks, and what is left when a step had to be killed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import SandboxCrashed, SandboxError, SandboxTimeout
from sanderling.sandbox import LocalPythonExecutor, PythonExecutor, create_interpreter
from sanderling.sandbox._remote import RemoteInterpreter
from sanderling.sandbox._snapshots import MOST_SNAPSHOTS
from support.processes import descriptors, lasting, offspring, sandboxes, settle, watch
from support.sandbox import arun, error, run, value

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}
END = "import os; os._exit(1)"
RESTORED = "variables are what they were before this step"


@pytest.fixture(autouse=True)
def others_have_ended() -> None:
    """The tests here count sandboxes, and those of the tests before may still be ending."""
    gc.collect()
    lasting(sandboxes(), seconds=5)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These steps follow one another faster than those of an agent; each shall have its copy."""
    monkeypatch.setattr("sanderling.sandbox._checkpoint.SHARE", 1e9)


@contextlib.contextmanager
def copyable(**options: Any) -> Iterator[RemoteInterpreter]:
    python = create_interpreter("local", **{**ANY, **options})
    assert isinstance(python, RemoteInterpreter)
    try:
        python.open()
        if python.layers["snapshots"] is not True:
            pytest.skip("a process here is supervised by somebody else")
        yield python
    finally:
        python.close()


@pytest.fixture
def python() -> Iterator[RemoteInterpreter]:
    with copyable(timeout_seconds=5) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where work folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def state(pid: int) -> str:
    """What a process does, as /proc shows it in one letter."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def ticks(pid: int) -> int:
    """How much processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# What a killed step leaves behind


def test_a_step_that_ends_its_interpreter_leaves_the_variables_of_before(
    python: RemoteInterpreter,
) -> None:
    value(python, "x = [1]; f = open('file', 'w'); f.write('one')")
    for _ in range(3):
        told = error(python, f"x.append(2); open('new', 'w').close(); {END}")
        assert RESTORED in told
        assert "files in the work folder remain" in told
        assert value(python, "x, sorted(os.listdir()) if 'os' in globals() else 0") == ([1], 0)
    assert value(python, "import os; os.path.exists('new')")


def test_variables_that_were_sent_just_before_are_there(python: RemoteInterpreter) -> None:
    value(python, "x = 1")
    python.set_variables({"sent": [5]})
    assert RESTORED in error(python, f"sent.append(6); {END}")
    assert value(python, "x, sent") == (1, [5])


def test_the_first_step_can_be_killed_as_well(python: RemoteInterpreter) -> None:
    python.set_variables({"sent": 5})
    assert RESTORED in error(python, END)
    assert value(python, "sent") == 5


def test_a_step_that_cannot_be_stopped_leaves_the_variables_of_before() -> None:
    with copyable(timeout_seconds=0.3) as python:
        value(python, "x = 1")
        result = run(python, "x = 2\nimport itertools; sum(itertools.repeat(1))")
        assert isinstance(result.error, SandboxTimeout)
        assert RESTORED in str(result.error)
        assert value(python, "x") == 1


def test_it_is_the_same_under_asyncio(python: RemoteInterpreter) -> None:
    async def main() -> None:
        for _ in range(3):
            await arun(python, "x = 1")
            assert isinstance((await arun(python, f"x = 2; {END}")).error, SandboxCrashed)
            assert (await arun(python, "x")).output == 1

    asyncio.run(main())


def test_tools_are_those_of_now(python: RemoteInterpreter) -> None:
    from support.sandbox import specs

    tools = {"old": lambda: 1}
    python.set_tools(specs(tools))
    assert value(python, "old()", tools) == 1
    tools = {"new": lambda: 2}
    python.set_tools(specs(tools))
    error(python, END)
    assert value(python, "new()", tools) == 2
    assert "NameError" in error(python, "old()")


def test_who_does_not_want_it_starts_anew() -> None:
    with copyable(restore_after_kill=False) as python:
        value(python, "x = 1")
        assert len(sandboxes()) == 1
        assert "all variables of earlier steps are gone" in error(python, END)
        assert "NameError" in error(python, "x")


def test_one_that_broke_the_protocol_starts_anew(python: RemoteInterpreter) -> None:
    value(python, "x = 1")
    assert "broke its protocol" in error(python, "import os; os.write(3, b'garbage' * 100)")
    assert "NameError" in error(python, "x")


def test_no_more_than_one_copy_is_kept(python: RemoteInterpreter) -> None:
    for _ in range(5):
        value(python, "x = 1")
        python._resources.checkpoint.settle()
        await_so_many(2)


# Between steps


def test_threads_that_are_left_behind_burn_nothing_between_steps() -> None:
    for wanted in (True, False):
        with copyable(restore_after_kill=wanted) as python:
            before = sandboxes()
            code = (
                "import threading, time\n"
                "def burn():\n    while True: sum(range(1000))\n"
                "threading.Thread(target=burn, daemon=True).start()"
            )
            assert run(python, code).threads == 1
            python._resources.checkpoint.settle()
            (pid,) = before
            await_state(pid, "T")
            used = ticks(pid)
            with copyable() as other:  # something that takes time
                value(other, "sum(range(5_000_000))")
            assert (state(pid), ticks(pid)) == ("T", used)
            assert value(python, "1 + 1") == 2


def await_so_many(most: int) -> None:
    """Until those that nobody needs any more are gone."""
    for _ in range(100_000):
        if len(sandboxes()) <= most:
            return
        os.sched_yield()
    raise AssertionError(f"there are more than {most}: {sandboxes()}")


def await_state(pid: int, wanted: str) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        for _ in range(100_000):
            if state(pid) == wanted:
                return
            os.sched_yield()
    finally:
        os.close(descriptor)
    raise AssertionError(f"process {pid} is {state(pid)!r}, not {wanted!r}")


def test_a_paused_one_can_be_closed_and_takes_large_variables(python: RemoteInterpreter) -> None:
    value(python, "x = 1")
    python.set_variables({"large": bytes(20_000_000)})
    assert value(python, "len(large), x") == (20_000_000, 1)


# Snapshots


def test_a_snapshot_brings_back_variables_and_files_as_often_as_wanted(
    python: RemoteInterpreter,
) -> None:
    value(python, "x = {'a': [1]}; open('kept', 'w').write('one')")
    value(python, "import os; os.mkdir('deep'); os.symlink('/etc/passwd', 'deep/link')")
    with python.snapshot() as snapshot:
        for _ in range(3):
            value(
                python, "x['a'].append(2); open('kept', 'a').write('two'); os.unlink('deep/link')"
            )
            value(python, "open('deep/new', 'w').close()")
            python.restore(snapshot)
            assert value(python, "x, open('kept').read()") == ({"a": [1]}, "one")
            assert value(python, "os.listdir('deep'), os.readlink('deep/link')") == (
                ["link"],
                "/etc/passwd",
            )
    with pytest.raises(SandboxError, match="closed"):
        python.restore(snapshot)
    assert value(python, "x") == {"a": [1]}


def test_a_snapshot_serves_after_its_interpreter_was_killed(python: RemoteInterpreter) -> None:
    value(python, "x = 1")
    snapshot = python.snapshot()
    value(python, "x = 2")
    error(python, END)
    assert value(python, "x") == 2
    python.restore(snapshot)
    assert value(python, "x") == 1
    assert RESTORED in error(python, f"x = 3; {END}")
    assert value(python, "x") == 1


def test_variables_sent_after_a_snapshot_do_not_come_back(python: RemoteInterpreter) -> None:
    python.set_variables({"early": 1})
    snapshot = python.snapshot()
    python.set_variables({"late": 2})
    python.restore(snapshot)
    assert value(python, "early") == 1
    assert "NameError" in error(python, "late")


def test_what_is_tried_again_has_other_numbers_at_random(python: RemoteInterpreter) -> None:
    value(python, "import random; mine = random.Random(7); random.seed(1)")
    snapshot = python.snapshot()
    drawn = []
    for _ in range(4):
        python.restore(snapshot)
        drawn.append(value(python, "random.random(), mine.random()"))
    assert len({number for number, _ in drawn}) == 4
    assert len({number for _, number in drawn}) == 1


def test_there_are_only_so_many_snapshots(python: RemoteInterpreter) -> None:
    kept = [python.snapshot() for _ in range(MOST_SNAPSHOTS)]
    with pytest.raises(SandboxError, match="close one"):
        python.snapshot()
    kept.pop().close()
    python.snapshot().close()
    assert value(python, "1") == 1


def test_a_snapshot_that_is_forgotten_is_closed(python: RemoteInterpreter) -> None:
    python.snapshot()
    gc.collect()
    assert len(sandboxes()) == 1


def test_too_many_files_are_refused_and_nothing_is_lost(folder: Path) -> None:
    with copyable(snapshot_bytes=1000) as python:
        value(python, "open('large', 'w').write('x' * 2000); x = 1")
        for attempt in (python.snapshot, python.fork):
            with pytest.raises(SandboxError, match="snapshot_bytes"):
                attempt()
        assert value(python, "x") == 1
        assert sorted(path.name for path in folder.glob("*/files/*")) == ["branches", "work"]


def test_a_snapshot_of_a_work_folder_in_memory_has_no_files() -> None:
    with copyable(workdir_in_memory=True) as python:
        if not python.layers["namespaces"]:
            pytest.skip("there are no namespaces here")
        value(python, "x = 1; open('file', 'w').write('one')")
        snapshot = python.snapshot()
        value(python, "x = 2; open('file', 'w').write('two')")
        python.restore(snapshot)
        assert value(python, "x, open('file').read()") == (1, "two")


def test_nothing_can_be_done_while_a_step_runs(python: RemoteInterpreter) -> None:
    snapshot = python.snapshot()
    execution = python.execute("print()\nwhile True: pass")
    next(execution)
    for attempt in (python.snapshot, python.fork, lambda: python.restore(snapshot)):
        with pytest.raises(RuntimeError, match="runs a step"):
            attempt()
    execution.close()
    python.restore(snapshot)


def test_a_snapshot_belongs_to_its_interpreter(python: RemoteInterpreter) -> None:
    with copyable() as other, pytest.raises(SandboxError, match="not of this interpreter"):
        python.restore(other.snapshot())


# Forks


def test_a_fork_goes_its_own_way(python: RemoteInterpreter) -> None:
    value(python, "x = [1]; open('file', 'w').write('one')")
    fork = python.fork()
    try:
        value(fork, "x.append(2); open('file', 'a').write('two')")
        assert value(python, "x, open('file').read()") == ([1], "one")
        assert value(fork, "x, open('file').read()") == ([1, 2], "onetwo")
        assert value(fork, "import os; os.getcwd() == os.environ['HOME']")
        assert RESTORED in error(fork, END)
        assert value(fork, "x") == [1, 2]
    finally:
        fork.close()
    assert value(python, "x, open('file').read()") == ([1], "one")


def test_a_fork_outlives_what_it_was_forked_from(folder: Path) -> None:
    with copyable() as python:
        value(python, "x = 1; open('file', 'w').write('one')")
        fork = python.fork()
    try:
        assert value(fork, "x, open('file').read()") == (1, "one")
        assert "exit status 1" in error(fork, END)
        fork._resources.checkpoint.begin(wanted=False)
        assert "variables of earlier steps are gone" in error(fork, END)
        assert value(fork, "open('file').read()") == "one"
    finally:
        fork.close()
    assert list(folder.iterdir()) == []


def test_a_fork_has_the_same_limits() -> None:
    from support.sandbox import specs

    tools = {"tool": lambda: 1}
    with copyable(max_tool_calls=2) as python:
        python.set_tools(specs(tools))
        fork = python.fork()
        try:
            assert value(fork, "tool() + tool()", tools) == 2
            assert "2 tool calls" in error(fork, "tool(); tool(); tool()", tools)
        finally:
            fork.close()


def test_forks_run_at_once(python: RemoteInterpreter) -> None:
    value(python, "x = 20")
    forks = [python.fork() for _ in range(3)]
    with contextlib.ExitStack() as stack:
        for fork in forks:
            stack.callback(fork.close)
        results: dict[int, object] = {}

        def work(number: int) -> None:
            results[number] = value(forks[number], f"x + {number}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {0: 20, 1: 21, 2: 22}


def test_an_executor_has_them_too() -> None:
    with LocalPythonExecutor(additional_functions={"double": lambda n: 2 * n}) as python:
        python("x = 1")
        with python.snapshot() as snapshot, python.fork() as fork:
            python("x = 2")
            assert fork("double(x)").output == 2
            python.restore(snapshot)
            assert python("double(x)").output == 2


def test_who_has_none_says_who_has() -> None:
    class Mine(PythonExecutor):
        def send_tools(self, tools: Any) -> None: ...
        def send_variables(self, variables: Any) -> None: ...
        def __call__(self, code: str, state: Any = None) -> Any: ...

    mine = Mine()
    for attempt in (mine.snapshot, mine.fork):
        with pytest.raises(SandboxError, match="LocalPythonExecutor"):
            attempt()


# Endings


def test_closing_leaves_nothing(folder: Path) -> None:
    settle()
    processes, open_before = offspring(), descriptors()
    with copyable() as python:
        value(python, "x = 1")
        kept = [python.snapshot() for _ in range(3)]
        python.restore(kept[0])
        fork = python.fork()
        value(fork, "x")
        forgotten = python.fork()
        value(forgotten, "x")
        del forgotten
        fork.close()
    gc.collect()
    assert lasting(offspring() - processes) == set()
    assert descriptors() == open_before
    assert list(folder.iterdir()) == []
    assert all(snapshot.closed for snapshot in kept)


HOST = """
import sys
from sanderling.sandbox import LocalPythonExecutor
python = LocalPythonExecutor(additional_functions={"ready": lambda: print("ready", flush=True)})
python("x = 1")
kept = [python.snapshot() for _ in range(2)]
fork = python.fork()
fork("ready()\\nwhile True:\\n    try:\\n        for _ in iter(int, 1): pass\\n"
     "    except BaseException: pass")
"""


def test_nothing_outlives_a_host_that_is_killed(tmp_path: Path) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    left = offspring(host.pid)
    assert len(left) >= 6
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(watch(pid)) for pid in left]
        host.kill()
        host.communicate()
        assert all(end(10) for end in ends)


# What hostile code may try


def test_code_cannot_fork_when_a_copy_is_made(python: RemoteInterpreter) -> None:
    code = (
        "import os, threading\n"
        "made, busy = [], threading.local()\n"
        "def burn():\n"
        "    if getattr(busy, 'now', False): return\n"
        "    busy.now = True\n"
        "    try:\n"
        "        if os.fork() == 0:\n"
        "            while True: pass\n"
        "        made.append(1)\n"
        "    except OSError: pass\n"
        "    finally: busy.now = False\n"
        "def forever():\n"
        "    while True: burn()\n"
        "threading.Thread(target=forever, daemon=True).start()\n"
        "os.register_at_fork(before=burn, after_in_parent=burn, after_in_child=burn)\n"
    )
    for _ in range(5):
        run(python, code)
        run(python, "1")
    assert value(python, "1") == 1
    python._resources.checkpoint.settle()
    await_so_many(2)
    python.close()
    assert lasting(sandboxes()) == set()


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.close(4)",
        "import os; os.write(4, b'here')",
        "import os; os.write(4, bytes(4)); os.write(4, (12).to_bytes(4, 'little'))",
        "import os; os.set_blocking(4, False); [os.write(4, b'x' * 100) for _ in range(100_000)]",
        "import os, socket; s = socket.socket(fileno=os.dup(4)); s.shutdown(2)",
        "import os; os.dup2(os.open('/dev/null', os.O_RDWR), 4)",
        "import os\nos.register_at_fork(after_in_child=lambda: os._exit(7))",
        "import resource as r; held = [open('/dev/null') for _ in range(240)]",
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import random; random.seed = None; import tempfile; del tempfile.tempdir",
    ],
)
def test_who_spoils_the_copying_harms_nobody_else(python: RemoteInterpreter, code: str) -> None:
    with copyable() as other:
        value(other, "x = 1")
        run(python, code)
        for _ in range(2):
            run(python, "1")
        assert value(other, "x") == 1
        error(other, END)
        assert value(other, "x") == 1
    python.close()
    assert lasting(sandboxes()) == set()


def test_a_copy_that_never_comes_is_not_waited_for_without_end(
    python: RemoteInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sanderling.sandbox._snapshots._PATIENCE", 0.5)
    value(python, "x = 1")
    run(python, "import os\nos.register_at_fork(before=lambda: os.read(os.pipe()[0], 1))")
    result = run(python, "1")  # it still waits in its hook
    assert result.error is not None
    python.close()
    assert lasting(sandboxes()) == set()


def test_signals_reach_the_own_family_and_nobody_else(python: RemoteInterpreter) -> None:
    with copyable() as other:
        value(other, "x = 1")
        (victim,) = value(other, "import os; [os.getpid()]")
        assert "PermissionError" in error(python, f"import os; os.kill({victim}, 9)")
        for target in (0, 1, -1, os.getpid()):
            assert "Error" in error(python, f"import os; os.kill({target}, 9)")
        assert value(python, "import os, signal; signal.raise_signal(signal.SIGURG)") is None
        assert value(other, "x") == 1
    fork = python.fork()
    try:
        assert "SIGABRT" in error(fork, "import os; os.abort()")
        assert value(fork, "import signal; signal.raise_signal(signal.SIGURG)") is None
    finally:
        fork.close()


def test_links_of_the_code_are_not_followed_by_the_host(
    python: RemoteInterpreter, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("keep this")
    value(python, f"import os; os.symlink({str(secret)!r}, 'link'); os.symlink('/', 'root')")
    value(python, "os.makedirs('a/' * 50); os.mkfifo('pipe') if False else None")
    fork = python.fork()
    try:
        assert value(fork, "import os; sorted(os.listdir())") == ["a", "link", "root"]
        assert value(fork, "os.path.islink('link')")
        assert "Error" in error(fork, "open('link').read()")
    finally:
        fork.close()
    assert secret.read_text() == "keep this"


SWAP = """
import os
here = os.getcwd()
os.rename(here, os.path.dirname(here) + "/elsewhere")
os.symlink({target!r}, here)
"""


@pytest.mark.parametrize("restore_after_kill", [True, False])
def test_a_fork_that_puts_a_link_in_the_place_of_its_folder_leads_nobody_there(
    folder: Path, restore_after_kill: bool
) -> None:
    target = folder / "target"
    (target / "inner").mkdir(parents=True)
    (target / "secret").write_text("keep this")
    with copyable(restore_after_kill=restore_after_kill) as python:
        value(python, "x = 1")
        fork = python.fork()
        try:
            snapshot = fork.snapshot()
            value(fork, SWAP.format(target=str(target)))
            with pytest.raises(SandboxError, match="could not be copied"):
                fork.snapshot()
            with pytest.raises(SandboxError, match="could not be put back"):
                fork.restore(snapshot)
            assert "exit status 1" in error(fork, END)
            fork._resources.checkpoint.begin(wanted=False)
            assert "variables of earlier steps are gone" in error(fork, END)
            assert value(fork, "import os; os.listdir()") == []
            assert "PermissionError" in error(fork, f"open({str(target / 'secret')!r}).read()") or (
                "FileNotFoundError" in error(fork, f"open({str(target / 'secret')!r}).read()")
            )
            value(fork, "open('file', 'w').write('x')")
        finally:
            fork.close()
    assert (target / "secret").read_text() == "keep this"
    assert sorted(path.name for path in target.iterdir()) == ["inner", "secret"]
    assert list(folder.iterdir()) == [target]


def test_a_fork_that_puts_a_link_in_the_place_of_its_folder_has_none_removed(folder: Path) -> None:
    target = folder / "target"
    target.mkdir()
    (target / "secret").write_text("keep this")
    with copyable() as python:
        value(python, "x = 1")
        fork = python.fork()
        value(fork, SWAP.format(target=str(target)))
        fork.close()
    assert (target / "secret").read_text() == "keep this"
    assert list(folder.iterdir()) == [target]


def test_folders_made_ahead_do_not_hinder_a_fork(python: RemoteInterpreter) -> None:
    value(python, "import os; there = os.path.dirname(os.getcwd()) + '/branches'")
    value(python, "for n in range(20): os.mkdir(f'{there}/{n}')")
    python.fork().close()


def test_folders_closed_to_their_owner_do_not_hinder_a_restore(python: RemoteInterpreter) -> None:
    value(python, "import os; open('file', 'w').write('one')")
    snapshot = python.snapshot()
    value(python, "for mode in (0, 0o300, 0o500): os.makedirs(f'{mode}', mode)")
    value(python, "os.mkdir(f'{0o300}/inner', 0o500)")
    python.restore(snapshot)
    assert value(python, "os.listdir()") == ["file"]


def test_a_dead_snapshot_is_told(python: RemoteInterpreter) -> None:
    value(python, "x = 1")
    python._resources.checkpoint.settle()
    before = sandboxes()
    snapshot = python.snapshot()
    for pid in sandboxes() - before:
        with watch(pid) as ends:
            os.kill(pid, signal.SIGKILL)
            assert ends(10)
    with pytest.raises(SandboxError):
        python.restore(snapshot)
    assert value(python, "x") == 1
