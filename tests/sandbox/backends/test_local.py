"""The locked process: what it has, what it lacks, and that nothing of it is left behind."""

from __future__ import annotations

import _ctypes
import ast
import asyncio
import contextlib
import fcntl
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import SandboxUnavailable
from sanderling.sandbox import CodeResult, create_interpreter
from sanderling.sandbox.backends._local import LocalBackend
from support.processes import descriptors, lasting, offspring, sandboxes, settle, watch
from support.sandbox import ainterpreter, arun, error, interpreter, run, value

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}


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


@contextlib.contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    settle()
    processes, open_before = offspring(), descriptors()
    yield
    gc.collect()
    assert lasting(offspring() - processes) == set()
    assert descriptors() == open_before
    assert list(folder.iterdir()) == []


def test_closing_leaves_nothing(folder: Path) -> None:
    with nothing_left(folder):
        with interpreter(timeout_seconds=0.2, **ANY) as python:
            value(python, "open('file', 'w').close()")
            assert len(list(folder.rglob("file"))) == 1
            run(python, "import os; os._exit(1)")
            run(python, "import itertools; sum(itertools.repeat(1))")
            value(python, "1")
        with interpreter() as never_used:
            del never_used


def test_closing_leaves_nothing_under_asyncio(folder: Path) -> None:
    async def main() -> None:
        async with ainterpreter(timeout_seconds=0.2, **ANY) as python:
            assert (await arun(python, "1")).output == 1
            assert (await arun(python, "import os; os._exit(1)")).error is not None
            assert (await arun(python, "1")).output == 1

    with nothing_left(folder):
        asyncio.run(main())


def test_forgetting_leaves_nothing(folder: Path) -> None:
    with nothing_left(folder):
        python = create_interpreter()
        value(python, "1")
        gone = weakref.ref(python)
        del python
        gc.collect()
        assert gone() is None


def test_a_half_driven_step_that_is_forgotten_leaves_nothing(folder: Path) -> None:
    with nothing_left(folder):
        execution = create_interpreter().execute("print()\nwhile True: pass")
        next(execution)
        del execution


HOST = """
import sys
from sanderling.sandbox import LocalPythonExecutor
python = LocalPythonExecutor(additional_functions={"ready": lambda: print("ready", flush=True)})
python("ready()")
print("idle", flush=True)
if sys.argv[1] == "busy":
    python("ready()\\nwhile True:\\n    try:\\n        for _ in iter(int, 1): pass\\n"
           "    except BaseException: pass")
else:
    sys.stdin.read()
"""


def host(folder: Path, mode: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOST, mode],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    for _ in range(3 if mode == "busy" else 2):
        assert started.stdout.readline()
    return started


@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_nothing_outlives_a_host_that_is_killed(tmp_path: Path, mode: str) -> None:
    killed = host(tmp_path, mode)
    left = offspring(killed.pid)
    assert len(left) >= 3  # a fork server and its guard, a process, and perhaps a copy of it
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(watch(pid)) for pid in left]
        killed.kill()
        killed.communicate()
        assert all(end(10) for end in ends), "something lives on"
    assert list(tmp_path.iterdir()) == [], "a work folder is left"


def test_a_host_that_ends_leaves_nothing(tmp_path: Path) -> None:
    ended = host(tmp_path, "waits")
    left = offspring(ended.pid)
    assert len(left) >= 3
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(watch(pid)) for pid in left]
        ended.communicate()
        assert ended.returncode == 0
        assert all(end(10) for end in ends)
    assert list(tmp_path.iterdir()) == []


STRANGE_HOST = """
import os, signal, sys
told = os.dup(1)
exec(sys.argv[1])
from sanderling.sandbox import LocalPythonExecutor
other = LocalPythonExecutor()
python = LocalPythonExecutor(["os"], timeout_seconds=0.5)
other("kept = 1")
said = []
for code in ("while True: pass", "import os; os._exit(3)"):
    try: python(code)
    except Exception as error: said.append(str(error))
said += [other("kept").output, other.fork()("kept").output]
os.write(told, repr(said).encode())
"""


@pytest.mark.parametrize(
    "strange",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",  # then who forks could not wait
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "os.close(0); os.close(1)",
    ],
)
def test_what_a_host_has_done_to_itself_does_not_reach_its_sandboxes(strange: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRANGE_HOST, strange], capture_output=True, text=True, timeout=60
    )
    timeout, crash, *kept = ast.literal_eval(done.stdout)
    assert "exceeded 0.5 s and was stopped" in timeout
    assert "exit status 3" in crash
    assert kept == [1, 1]


def test_it_outlives_the_thread_that_started_it() -> None:
    with interpreter() as python:
        thread = threading.Thread(target=run, args=(python, "x = 1"))
        thread.start()
        thread.join()
        assert value(python, "x") == 1


def test_it_works_after_a_fork_of_the_host(folder: Path) -> None:
    with interpreter() as python:
        value(python, "1")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = b"failed"
            with contextlib.suppress(BaseException), interpreter() as inner:
                status = str(value(inner, "40 + 2")).encode()
            os.write(write, status)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            assert pipe.read() == b"42"
        os.waitpid(pid, 0)
        assert value(python, "2") == 2


def test_a_fork_of_the_host_does_not_get_between_the_host_and_its_sandbox(folder: Path) -> None:
    with interpreter() as python:
        value(python, "x = 1")
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            told = b""
            try:
                run(python, "x = 2")
            except RuntimeError as refused:
                told = str(refused).encode()
            finally:
                os.write(write, told)
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            assert b"create another one here" in pipe.read()
        os.waitpid(pid, 0)
        assert value(python, "x") == 1


def test_steps_run_in_a_host_that_has_no_descriptors_left() -> None:
    with interpreter() as python, contextlib.ExitStack() as taken:
        value(python, "x = 1")
        with contextlib.suppress(OSError):
            while True:
                taken.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        assert value(python, "x + 1") == 2
        assert value(python, "sum(range(10_000_000)) > 0") is True  # long enough to be looked at


def test_nothing_of_the_host_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    with tempfile.TemporaryFile() as secret, interpreter(**ANY) as python:
        os.set_inheritable(secret.fileno(), True)
        names = value(python, "import os; sorted(os.environ)")
        assert names == [
            "HOME",
            "JE_ARROW_MALLOC_CONF",
            "JOBLIB_MULTIPROCESSING",
            "LANG",
            "MALLOC_MMAP_THRESHOLD_",
            "MALLOC_TRIM_THRESHOLD_",
            "MPLBACKEND",
            "MPLCONFIGDIR",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "PATH",
            "TMPDIR",
        ]
        code = (
            "def is_open(fd):\n"
            "    try: return bool(os.fstat(fd))\n"
            "    except OSError: return False\n"
            "[fd for fd in range(256) if is_open(fd)]"
        )
        assert value(python, code) == [0, 1, 2, 3]
        assert value(python, "import sys; sys.argv[1:]") == []
        assert value(python, "[p for p in sys.path if 'sanderling' in p or p == '']") == []
        assert value(python, "os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR']")


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "open('/root/.bashrc').read()",
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.kill(1, 0)",
        "import os; os.fork()",
        "open('/tmp/x', 'w')",
        "open('../x', 'w')",
        "import os; os.listdir('/proc')",
        "import sanderling",
        "bytearray(8 << 30)",
        "with open('big', 'wb') as f:\n    for _ in range(300): f.write(bytes(1 << 20))",
    ],
)
def test_the_walls_stand(code: str) -> None:
    with interpreter(**ANY) as python:
        assert error(python, code)
        assert value(python, "open('mine', 'w').write('x')") == 1


def test_libraries_work_behind_the_walls() -> None:
    with interpreter(**ANY) as python:
        code = (
            "import numpy, sqlite3, tempfile, zoneinfo, concurrent.futures, asyncio\n"
            "a = numpy.random.rand(300, 300)\n"
            "ok = [numpy.allclose(numpy.linalg.inv(a) @ a, numpy.eye(300), atol=1e-4)]\n"
            "db = sqlite3.connect('db'); db.execute('create table t (x)')\n"
            "with tempfile.NamedTemporaryFile() as f: ok.append(f.write(b'x') == 1)\n"
            "ok.append(zoneinfo.ZoneInfo('Europe/Paris').key == 'Europe/Paris')\n"
            "async def f(): return await asyncio.to_thread(lambda: True)\n"
            "ok.append(await f())\n"
            "all(ok)"
        )
        assert value(python, code) is True


def test_limits_can_be_set() -> None:
    with interpreter(memory_bytes=1 << 30, file_bytes=1000, open_files=32, **ANY) as python:
        code = "import resource as r; [r.getrlimit(k)[0] for k in (r.RLIMIT_AS, r.RLIMIT_FSIZE)]"
        assert value(python, code) == [1 << 30, 1000]
        assert "memory of the sandbox" in error(python, "x = bytes(2 << 30)")
        assert "grew past" in error(python, "with open('f', 'wb') as f: f.write(bytes(5000))")


@pytest.mark.parametrize(
    "code",
    [
        "while True: kept.append(str(len(kept)) * 10)",  # what is told of it needs memory itself
        """
for _ in range(1_000):
    try:
        while True: kept.append(str(len(kept)) * 10)
    except MemoryError: pass
""",
    ],
    ids=["told", "caught"],
)
def test_memory_that_is_full_to_the_last_byte_costs_no_variables(code: str) -> None:
    with interpreter(memory_bytes=192 << 20, restore_after_kill=False) as python:
        value(python, "kept = []")
        result = run(python, code)
        assert "used up (limit: 192 MiB)" in str(result.error) or result.error is None
        assert value(python, "len(kept) > 100_000")
        assert value(python, "kept.clear(); len([[] for _ in range(100_000)])") == 100_000


def test_a_work_folder_in_memory_says_how_many_files_it_may_hold() -> None:
    with interpreter(workdir_in_memory=True, workdir_files=10) as python:
        told = error(python, "for n in range(50): open(f'f{n}', 'w').close()")
        assert "work folder is full (limit: 1 GiB), or holds the 10 files that it may" in told


@pytest.mark.skipif(not hasattr(_ctypes, "__file__"), reason="this Python is one file")
def test_a_library_in_the_work_folder_is_told_why_it_cannot_be_loaded() -> None:
    with interpreter(memory_bytes=1 << 30, **ANY) as python:
        value(python, "import _ctypes, shutil; shutil.copy(_ctypes.__file__, 'own.so')")
        told = error(python, "import ctypes; ctypes.CDLL('./own.so')")
        assert "no room in memory (limit: 1 GiB), or lies in the work folder" in told


def test_code_keeps_nobody_out_of_a_file_that_it_may_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("x")
    code = (
        f"import fcntl; file = open({str(data)!r})\n"
        "fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_SH)\n"
        "file.read()"
    )
    with interpreter(extra_read=[str(data)], **ANY) as python, data.open("r+") as file:
        assert value(python, code) == "x"
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_few_descriptors_are_told_of_where_they_are_missing() -> None:
    with interpreter(open_files=3, **ANY) as python:
        assert value(python, "1 + 1") == 2
        assert "(limit: 3)" in error(python, "open('file', 'w')")


def test_code_sends_no_descriptors() -> None:
    """Those under way count for all processes of a user, so other hosts could send none."""
    code = "import socket; a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [0])"
    with interpreter(**ANY) as python:
        assert "PermissionError" in error(python, code)
        assert value(python, "a.send(b'x'), b.recv(1)") == (1, b"x")


QUEUED_SIGNALS = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
for _ in range(1_000): os.kill(os.getpid(), signal.SIGRTMIN)
"""


def test_code_does_not_queue_the_signals_of_its_user_away() -> None:
    before = sandboxes()
    with interpreter(restore_after_kill=False, **ANY) as python:
        value(python, QUEUED_SIGNALS)
        (pid,) = sandboxes() - before
        status = Path(f"/proc/{pid}/status").read_text()
        queued = next(line for line in status.splitlines() if line.startswith("SigQ:"))
        assert int(queued.split()[1].partition("/")[0]) < 100


def test_a_folder_can_be_opened_to_reading(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("open")
    with interpreter(extra_read=(str(tmp_path),), **ANY) as python:
        assert value(python, f"open({str(tmp_path / 'data')!r}).read()") == "open"
        assert error(python, f"open({str(tmp_path / 'data')!r}, 'w')")


def test_all_of_the_machine_can_be_opened_to_reading() -> None:
    with interpreter(extra_read=["/"], **ANY) as python:
        assert value(python, "import os; 'etc' in os.listdir('/')") is True
        assert value(python, "open('/dev/null', 'w').write('x'), open('f', 'w').write('x')") == (
            1,
            1,
        )
        assert "work folder" in error(python, "open('/tmp/outside', 'w')")


@pytest.mark.parametrize("given", ["/data", Path("/data"), ["/not/there"]])
def test_what_may_be_read_besides_is_a_list_of_what_exists(given: Any) -> None:
    with pytest.raises(ValueError, match="extra_read"):
        create_interpreter(extra_read=given)


def test_what_may_be_read_besides_is_meant_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("open")
    monkeypatch.chdir(tmp_path)
    with interpreter(extra_read=[Path("data")], **ANY) as python:
        monkeypatch.chdir("/")
        assert value(python, f"open({str(tmp_path / 'data')!r}).read()") == "open"


def test_a_process_that_cannot_lock_itself_is_not_used(folder: Path) -> None:
    impossible = interpreter(file_bytes=1 << 70)
    with impossible as python, pytest.raises(SandboxUnavailable, match=r"FSIZE.*inprocess"):
        python.open()
    assert lasting(sandboxes()) == set()


def test_a_start_that_is_cancelled_leaves_nothing(folder: Path) -> None:
    async def main() -> None:
        python = create_interpreter()
        task = asyncio.create_task(python.aopen())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await python.aclose()

    with nothing_left(folder):
        asyncio.run(main())


def test_a_backend_starts_one_process_at_a_time(folder: Path) -> None:
    with nothing_left(folder):
        before = sandboxes()
        backend = LocalBackend()
        first = backend.start()
        second = backend.start()
        assert len(lasting(sandboxes() - before, seconds=1)) == 1
        first.socket.close()
        second.socket.close()
        backend.close()


def test_steps_can_be_driven_from_different_threads() -> None:
    with interpreter() as python:
        results: list[CodeResult] = []
        for number in range(3):
            code = f"n = {number}\nn"
            thread = threading.Thread(target=lambda: results.append(run(python, code)))  # noqa: B023
            thread.start()
            thread.join()
        assert [result.output for result in results] == [0, 1, 2]


def test_the_terminals_interrupt_does_not_reach_it() -> None:
    before = sandboxes()
    with interpreter() as python:
        value(python, "x = 1")
        sessions = {os.getsid(pid) for pid in sandboxes() - before}  # the kernel, and its copy
        assert len(sessions) == 1
        assert os.getsid(0) not in sessions
        assert signal.getsignal(signal.SIGINT) is not None
