"""Processes forked from one that stands ready: they share what is loaded, and nothing else."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox import create_interpreter
from sanderling.sandbox.backends._fork_servers import ForkServers
from sanderling.sandbox.backends._local import LocalBackend, preload
from support.processes import (
    descriptors,
    fork_servers,
    lasting,
    offspring,
    resident,
    sandboxes,
    settle,
    watch,
)
from support.sandbox import error, interpreter, value

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}
LOADED = "import sys; {} <= set(sys.modules)"


@pytest.fixture(autouse=True)
def others_have_ended() -> None:
    """The tests here count sandboxes, and those of the tests before may still be ending."""
    gc.collect()
    lasting(sandboxes(), seconds=5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where work folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def loads(modules: set[str], **options: Any) -> bool:
    """Whether a new sandbox has these modules at its first step."""
    with interpreter(**options) as python:
        return bool(value(python, LOADED.format(modules)))


@pytest.fixture(scope="module")
def numpy_loaded() -> None:
    """Sandboxes of this process find NumPy loaded from here on."""
    assert preload(frozenset({"numpy", "numpy.random"}), 30)


def test_one_fork_server_forks_them_all() -> None:
    with interpreter() as first, interpreter() as second:
        first.open()
        second.open()
        before = fork_servers()
        assert len(sandboxes()) == 2
        value(first, "x = 1")
        assert "x" in error(second, "x")
        assert fork_servers() == before


def test_five_hundred_leave_nothing(folder: Path) -> None:
    settle()
    processes, open_before = offspring(), descriptors()
    size = 0
    for turn in range(9):
        size = resident() if turn == 1 else size  # the first one loads and caches things
        with contextlib.ExitStack() as stack:
            alive = [stack.enter_context(interpreter()) for _ in range(50)]
            for python in alive:
                python.open()
            assert len(sandboxes()) == 50
            assert [value(python, "x = 1; x") for python in alive] == [1] * 50
    for _ in range(50):
        with interpreter() as python:
            python.open()
    gc.collect()
    assert lasting(offspring() - processes) == set()
    assert descriptors() == open_before
    assert list(folder.iterdir()) == []
    assert resident() - size < 16 << 20


def test_the_end_of_a_process_is_told() -> None:
    with interpreter(**ANY) as python:
        assert "exit status 3" in error(python, "import os; os._exit(3)")
        assert "SIGSEGV" in error(python, "import ctypes; ctypes.string_at(0)")
        assert "SIGKILL" in error(python, "import os; os.kill(os.getpid(), 9)")
        assert value(python, "1") == 1


def test_a_sandbox_dies_with_its_fork_server_and_the_next_one_works(folder: Path) -> None:
    with interpreter() as python, contextlib.ExitStack() as stack:
        value(python, "x = 1")
        ends = [stack.enter_context(watch(pid)) for pid in fork_servers() | sandboxes()]
        for pid in fork_servers():
            os.kill(pid, signal.SIGKILL)
        assert all(end(10) for end in ends)
        told = error(python, "x")
        assert "the process that it was forked from has ended" in told
        assert "variables of earlier steps are gone" in told
        assert value(python, "2") == 2
        with interpreter() as another:
            assert value(another, "3") == 3


def test_a_fork_server_that_died_idle_is_replaced() -> None:
    with interpreter() as python:
        value(python, "1")
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(watch(pid)) for pid in fork_servers()]
        for pid in fork_servers():
            os.kill(pid, signal.SIGKILL)
        assert all(end(10) for end in ends)
    with interpreter() as python:
        assert value(python, "2") == 2


def test_no_secret_of_the_host_reaches_the_fork_server(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from sanderling.sandbox import create_interpreter\n"
        f"secret = open({str(tmp_path / 'secret')!r}, 'w')\n"
        "os.set_inheritable(secret.fileno(), True)\n"
        "python = create_interpreter()\n"
        "python.open()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "SECRET_KEY": "hidden-from-all"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        (fork_server,) = fork_servers(host.pid)
        assert b"hidden" not in Path(f"/proc/{fork_server}/environ").read_bytes()
        # The control socket, the two that wake it and the poll; and of one child the reports, the
        # listener and the pidfd: it takes the listener in its own time.
        for _ in range(100_000):
            open_files = [
                str(entry.readlink()) for entry in Path(f"/proc/{fork_server}/fd").iterdir()
            ]
            if len(open_files) == 10 and "anon_inode:seccomp notify" in open_files:
                break
            os.sched_yield()
        assert open_files.count("/dev/null") == 3
        others = [name.partition(":")[0] for name in open_files if name != "/dev/null"]
        assert others.count("socket") == 4
        assert sorted(set(others)) in (["anon_inode", "socket"], ["anon_inode", "pidfd", "socket"])
        assert len(others) == 7
        assert len(list(Path(f"/proc/{fork_server}/task").iterdir())) == 1
    finally:
        host.communicate()


def test_what_a_sandbox_does_to_its_interpreter_stays_there() -> None:
    with interpreter(**ANY) as first, interpreter(**ANY) as second:
        value(first, "import json, os; json.loads = os.environ['MINE'] = 'changed'")
        assert value(second, "import json, os; json.loads('1'), 'MINE' in os.environ") == (1, False)


def test_numbers_at_random_differ() -> None:
    code = "import random; random.random()"
    assert len({_fresh(code) for _ in range(5)}) == 5


def test_numbers_of_loaded_numpy_differ(numpy_loaded: None) -> None:
    code = "import numpy; float(numpy.random.rand()), float(numpy.random.default_rng().random())"
    found = [_fresh(code) for _ in range(5)]
    assert len({number for pair in found for number in pair}) == 10


def _fresh(code: str) -> Any:
    with interpreter(**ANY) as python:
        return value(python, code)


def test_what_code_imports_is_loaded_for_later_sandboxes() -> None:
    with interpreter(**ANY) as python:
        value(python, "import pandas")
    assert preload(frozenset(), 30)
    assert loads({"pandas"}, **ANY)
    with interpreter(**ANY) as python:
        code = "import pandas; float(pandas.DataFrame({'a': [1.0, 2.0]}).a.sum())"
        assert value(python, code) == 3.0


def test_loaded_numpy_works_behind_the_walls(numpy_loaded: None) -> None:
    with interpreter(**ANY) as python:
        code = (
            "import numpy, os\n"
            "a = numpy.random.rand(300, 300)\n"
            "bool(numpy.allclose(numpy.linalg.inv(a) @ a, numpy.eye(300), atol=1e-4))"
        )
        assert value(python, code) is True
        assert value(python, "os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR']")
        assert value(python, "import tempfile; tempfile.gettempdir() == os.getcwd()")


def test_who_may_not_import_it_does_not_get_it(numpy_loaded: None) -> None:
    code = "import sys; 'numpy' in sys.modules"
    with interpreter(additional_authorized_imports=["sys"]) as python:
        assert value(python, code) is False
        assert "numpy" in error(python, "import numpy")
    with interpreter(additional_authorized_imports=["sys", "numpy.linalg"]) as python:
        assert value(python, code) is True


def test_who_has_little_memory_does_not_get_it(numpy_loaded: None) -> None:
    with interpreter(memory_bytes=128 << 20, **ANY) as python:
        assert value(python, "import sys; 'numpy' in sys.modules") is False


@pytest.fixture
def own_family(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """ForkServers that have loaded nothing yet, whatever the tests before have imported."""
    family = ForkServers(os.getpid())
    monkeypatch.setattr("sanderling.sandbox.backends._local.fork_servers", lambda _: family)
    yield
    atexit.unregister(family._close)
    family._close()


def test_a_fork_server_that_is_replaced_stays_for_its_sandboxes(own_family: None) -> None:
    before = fork_servers()
    assert preload(frozenset({"numpy"}), 30)
    (first,) = fork_servers() - before
    with watch(first) as ends:
        with interpreter(**ANY) as python:
            value(python, "import numpy; x = 1")
            assert preload(frozenset({"sympy"}), 30)
            assert loads({"numpy", "sympy"}, **ANY)
            assert value(python, "x") == 1
            assert not ends(0)
        assert ends(10)
    assert loads({"numpy", "sympy"}, **ANY)


@contextlib.contextmanager
def _started(backend: LocalBackend) -> Iterator[Any]:
    link = backend.start()
    try:
        yield link
    finally:
        link.socket.close()
        backend.close()


def test_killing_twice_tells_the_same() -> None:
    with _started(LocalBackend()) as link:
        assert link.kill() == link.kill() == "it hung up"
        link.interrupt()  # of one that is gone: nothing


def test_a_fork_of_the_host_leaves_the_sandbox_alone() -> None:
    python = create_interpreter()
    try:
        value(python, "x = open('file', 'w').write('kept')")
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                python.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert value(python, "x, open('file').read()") == (4, "kept")
    finally:
        python.close()


def test_a_host_without_descriptors_is_told() -> None:
    with interpreter() as python:
        python.open()
    used = len(list(Path("/proc/self/fd").iterdir()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    errors = []
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(interpreter()) for _ in range(20)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, hard))
        try:
            for python in made:
                try:
                    python.open()
                except (SandboxUnavailable, OSError) as problem:
                    errors.append(str(problem))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert errors
        assert value(made[0], "1") == 1
        gc.collect()
    with interpreter() as python:
        assert value(python, "1") == 1


def test_a_fork_server_that_has_no_descriptors_left_keeps_its_sandboxes() -> None:
    with interpreter() as first:
        value(first, "x = 1")
        limits = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in fork_servers()}
        for pid, (_, hard) in limits.items():
            used = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, hard))
        try:
            with interpreter() as second, pytest.raises(SandboxUnavailable, match="be started"):
                second.open()
        finally:
            for pid, limit in limits.items():
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        assert value(first, "x") == 1
        with interpreter() as third:
            assert value(third, "1") == 1


def test_code_cannot_have_modules_of_its_choice_loaded() -> None:
    with interpreter(**ANY) as python:
        code = (
            "import json, os\n"
            "text = json.dumps({'t': 'done', 'id': 1, 'v': None, 'text': '', 'error': None,"
            " 'threads': 0, 'interrupted': False, 'imported': ['os; evil']}).encode()\n"
            "os.write(3, len(text).to_bytes(4, 'little') + bytes(4) + text)"
        )
        assert "broke its protocol" in error(python, code)
