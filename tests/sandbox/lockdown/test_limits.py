"""What a locked process can use up, and how it may end: the host stays as it is."""

import pytest

from support.locked import Station

MIB = 1 << 20


@pytest.mark.parametrize(
    "code",
    [
        "said = len(bytearray(8 << 30))",
        "x = []\nwhile True: x.append(bytearray(8 << 20))",
        "said = len('a' * 10**10)",
        "x = [0]\nwhile True: x += x",
    ],
)
def test_memory_ends_in_a_memory_error(locked: Station, code: str) -> None:
    ended = locked.run(code, memory_bytes=512 * MIB)

    assert (ended.status, ended.said.split(":")[0]) == (0, "MemoryError")


def test_shared_memory_counts(locked: Station) -> None:
    ended = locked.run("import mmap; said = len(mmap.mmap(-1, 1 << 30))", memory_bytes=512 * MIB)

    assert ended.said == "ENOMEM"


def test_threads_end_in_an_error(locked: Station) -> None:
    ended = locked.run(
        "import threading\n"
        "stop = threading.Event(); threads = []\n"
        "try:\n"
        "    while len(threads) < 5000:\n"
        "        threads.append(threading.Thread(target=stop.wait)); threads[-1].start()\n"
        "except RuntimeError: said = 'no more'\n"
        "stop.set()",
        memory_bytes=512 * MIB,
    )

    assert ended.said == "no more"


def test_a_file_has_a_largest_size(locked: Station, namespaces: bool) -> None:
    ended = locked.run(
        "open('big', 'wb').write(bytes(3 << 20))", file_bytes=MIB, namespaces=namespaces
    )

    assert ended.said == "EFBIG"


def test_a_sparse_file_has_a_largest_size(locked: Station) -> None:
    ended = locked.run("open('big', 'wb').truncate(1 << 40)", file_bytes=MIB)

    assert ended.said == "EFBIG"


def test_descriptors_are_counted(locked: Station) -> None:
    ended = locked.run("x = [open('/dev/null') for _ in range(100)]", open_files=64)

    assert ended.said == "EMFILE"


def test_processor_time_ends_in_a_kill(locked: Station) -> None:
    ended = locked.run("while True: pass", cpu_seconds=1)

    assert ended.status == -9


def test_the_quota_of_the_work_folder(locked: Station, own_root: bool) -> None:
    ended = locked.run(
        "import os\nfor n in range(8): open(f'f{n}', 'wb').write(bytes(1 << 20))",
        namespaces=own_root,
        workdir_bytes=4 * MIB,
    )

    assert ended.said == "ENOSPC"


def test_the_number_of_files_in_the_work_folder(locked: Station, own_root: bool) -> None:
    ended = locked.run(
        "for n in range(100): open(f'f{n}', 'wb').close()",
        namespaces=own_root,
        workdir_bytes=4 * MIB,
        workdir_files=50,
    )

    assert ended.said == "ENOSPC"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import ctypes; ctypes.string_at(0)", -11),
        ("import os; os.abort()", -6),
        ("import os; os._exit(7)", 7),
        ("import signal; signal.raise_signal(signal.SIGKILL)", -9),
    ],
)
def test_a_crash_is_the_childs_alone(
    locked: Station, namespaces: bool, code: str, status: int
) -> None:
    assert locked.run(code, namespaces=namespaces).status == status
    assert locked.run("said = 'next'").said == "next"


def test_deep_recursion_is_an_error(locked: Station) -> None:
    ended = locked.run("def f(): f()\nf()")

    assert (ended.status, ended.said.split(":")[0]) == (0, "RecursionError")
