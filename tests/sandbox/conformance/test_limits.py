"""What code may use up in each place, and what the model reads when it wants more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from sanderling.errors import SandboxLimitExceeded, SandboxTimeout
from sanderling.sandbox import create_interpreter
from sanderling.sandbox._limits import LIMIT_NAMES

if TYPE_CHECKING:
    from support.places import Driven, Place

MIB = 1 << 20
Start = Callable[..., "Driven"]

# What each place keeps, beside the time of a step, its output and its calls.
KEPT = {
    "local": {
        "cpu_seconds",
        "memory_bytes",
        "file_bytes",
        "workdir_bytes",
        "workdir_files",
        "open_files",
        "max_threads",
    },
    "docker": {
        "memory_bytes",
        "file_bytes",
        "workdir_bytes",
        "workdir_files",
        "open_files",
        "max_threads",
    },
    "wasm": {"cpu_seconds", "memory_bytes"},
    "inprocess": set[str](),
    "e2b": set[str](),  # how large their machines are is the provider's business
    "modal": set[str](),
    "blaxel": set[str](),
}


def limited(place: Place, start: Start, **limits: Any) -> Driven:
    """An interpreter with limits, where it can keep them."""
    if limits.keys() & LIMIT_NAMES - KEPT[place.name]:
        pytest.skip("a place that does not keep this limit")
    return start(**limits)


@pytest.mark.parametrize("name", sorted(LIMIT_NAMES))
def test_a_limit_is_kept_or_refused(place: Place, name: str) -> None:
    settings: dict[str, Any] = {**place.options, name: 64 * MIB}
    if name in KEPT[place.name]:
        create_interpreter(place.name, **settings).close()
        create_interpreter(place.name, **{**settings, name: None}).close()
        for wrong in (0, -1, "1g", True):
            with pytest.raises(ValueError, match=f"{name} must be a"):
                create_interpreter(place.name, **{**settings, name: wrong})
    else:
        with pytest.raises(ValueError, match=f"{place.name}.* cannot keep {name}: .*"):
            create_interpreter(place.name, **settings)


def test_time(place: Place, start: Start) -> None:
    python = start(timeout_seconds=0.4)
    result = python.run("kept = 1\nimport time\nwhile True: time.sleep(0.01)")
    assert isinstance(result.error, SandboxTimeout)
    told = str(result.error)
    assert "The step exceeded 0.4 s and was stopped. Variables keep what they had" in told
    assert "Do it in smaller steps" in told
    assert "<step 1>" in told
    assert python.value("kept") == 1


def test_processor_time(place: Place, start: Start) -> None:
    python = limited(place, start, cpu_seconds=0.5, timeout_seconds=30)
    python.value("import time; time.sleep(0.7)")
    for _ in range(2):  # it is that of a step: the next one has all of it again
        result = python.run("kept = 1\nwhile True: pass")
        assert isinstance(result.error, SandboxTimeout)
        assert "used more than its 0.5 s of processor time and was stopped" in str(result.error)
        assert python.value("kept") == 1


def test_memory(place: Place, start: Start) -> None:
    python = limited(place, start, memory_bytes=512 * MIB)
    told = python.error("kept = 1\nx = []\nwhile True: x.append(bytearray(8 << 20))")
    assert "MemoryError" in told
    assert "the memory of the sandbox is used up (limit: 512 MiB). Variables stay" in told
    assert python.value("x.clear(); kept") == 1


def test_the_size_of_a_file(place: Place, start: Start) -> None:
    python = limited(place, start, file_bytes=MIB)
    told = python.error("with open('big', 'wb') as f:\n    while True: f.write(bytes(1 << 16))")
    assert "File too large" in told
    assert "for one file (limit: 1 MiB). What was written before stays" in told
    assert python.value("import os; os.path.getsize('big')") == MIB


def test_the_size_of_the_work_folder(place: Place, start: Start) -> None:
    python = limited(place, start, workdir_bytes=4 * MIB)
    code = (
        "kept = 1\nimport time\nfor n in range(1_000):\n"
        "    open(f'f{n}', 'wb').write(bytes(1 << 20)); time.sleep(0.02)"
    )
    told = python.error(code)
    assert "work folder" in told
    assert "4 MiB" in told
    assert "emove what is not needed" in told or "Remove files" in told
    assert python.value("import os, glob; [os.remove(f) for f in glob.glob('f*')]; kept") == 1
    assert python.value("open('small', 'w').write('x')") == 1


def test_the_number_of_files(place: Place, start: Start) -> None:
    python = limited(place, start, workdir_files=50)
    told = python.error(
        "import time\nfor n in range(10_000):\n    open(f'f{n}', 'w').close(); time.sleep(0.002)"
    )
    assert "work folder" in told
    assert python.value("import os, glob; [os.remove(f) for f in glob.glob('f*')]; 1") == 1


def test_open_files(place: Place, start: Start) -> None:
    python = limited(place, start, open_files=32)
    told = python.error("files = []\nwhile True: files.append(open('/dev/null'))")
    assert "too many files are open at once (limit: 32); close them" in told
    assert python.value("files.clear(); 1") == 1


def test_threads(place: Place, start: Start) -> None:
    python = limited(place, start, max_threads=8)
    told = python.error(
        "import threading\nstop = threading.Event()\n"
        "for n in range(1_000): threading.Thread(target=stop.wait).start()"
    )
    assert "can't start new thread" in told
    assert "(limit: 8)" in told
    assert "ThreadPoolExecutor" in told
    assert python.value("n, stop.set()") == (7, None)


def test_output(place: Place, start: Start) -> None:
    python = start(max_print_outputs_length=1_000)
    logs = python.run("for n in range(1_000): print(n)").logs
    assert len(logs) < 1_200
    assert logs.startswith("0\n1\n")
    assert logs.endswith("999\n")
    assert "characters cut out here: a step may print 1,000; print less" in logs


def test_tool_calls(place: Place, start: Start) -> None:
    python = start(max_tool_calls=3)
    python.use(note=lambda n: n)
    told = python.error("for n in range(9): note(n)")
    assert "note was not called: the 3 tool calls that one step may make are used up" in told
    assert "in the next step" in told
    assert python.value("[n, note(7)]") == [3, 7]


def test_threads_beyond_what_python_knows_end_the_interpreter(place: Place, start: Start) -> None:
    python = limited(place, start, max_threads=4, timeout_seconds=20)
    result = python.run(
        "import _thread, time\n"
        "for _ in range(100): _thread.start_new_thread(time.sleep, (60,))\n"
        "time.sleep(60)"
    )
    if place.name == "docker":  # the engine counts, and refuses
        assert "can't start new thread" in str(result.error)
        return
    assert isinstance(result.error, SandboxLimitExceeded)
    told = str(result.error)
    assert "threads; it may have 4 and was killed. The interpreter was rest" in told
    assert "Use a pool" in told
    assert python.value("1") == 1
