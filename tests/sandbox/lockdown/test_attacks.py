"""Hostile code behind the walls: as this user and as nobody, in the host's root and in its own."""

import os

import pytest

from support.attacks import ALL, Attack
from support.locked import Station
from support.unnamed_calls import UNNAMED


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_an_attack_is_stopped(locked: Station, namespaces: bool, attack: Attack) -> None:
    ended = locked.run(attack.code, namespaces=namespaces)

    assert (ended.status, ended.said) in [(0, outcome) for outcome in attack.outcomes]
    assert locked.secret.read_text() == "keep this"
    assert list(locked.outside.iterdir()) == []


@pytest.mark.parametrize(
    "attack", [attack for attack in ALL if attack.harmless], ids=lambda attack: attack.name
)
def test_it_is_the_walls_that_stop_it(locked: Station, attack: Attack) -> None:
    ended = locked.run(attack.code, lock=False)
    if attack.name == "extended attribute" and ended.said == "ENOTSUP":
        pytest.skip("the file system has no extended attributes")
    try:
        assert ended.said not in attack.outcomes
    finally:
        locked.secret.write_text("keep this")
        for left in locked.outside.iterdir():
            left.rmdir() if left.is_dir() else left.unlink()


def test_a_call_that_no_rule_names_is_refused(locked: Station, namespaces: bool) -> None:
    machine = ("x86_64", "aarch64").index(os.uname().machine)
    table = {name: row[machine] for name, row in UNNAMED.items() if row[machine] is not None}
    ended = locked.run(
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        f"table = {table!r}\n"
        "said = {}\n"
        "for name, number in table.items():\n"
        "    outcome = c.syscall(number, 0, 0, 0, 0, 0, 0), ctypes.get_errno()\n"
        "    if outcome != (-1, 1): said[name] = outcome",
        namespaces=namespaces,
    )

    assert ended.said == "{}"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only x86_64 has other tables of calls")
@pytest.mark.parametrize(
    "machine_code",
    [
        pytest.param("b814000000cd80c3", id="i386: mov $20, %eax; int $0x80"),
        pytest.param("b8270000400f05c3", id="x32: mov $0x40000027, %eax; syscall"),
    ],
)
def test_another_table_of_calls_ends_the_process(locked: Station, machine_code: str) -> None:
    ended = locked.run(
        "import ctypes, mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        f"page.write(bytes.fromhex({machine_code!r}))\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "said = ctypes.CFUNCTYPE(ctypes.c_int)(address)()"
    )

    assert ended.status == -31  # SIGSYS


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.chmod(secret, 0)",
        "import os; os.utime(secret, (1, 1))",
        "import os; os.chown(secret, 1, 1)",
    ],
)
def test_a_pretended_change_changes_nothing(locked: Station, namespaces: bool, code: str) -> None:
    before = locked.secret.stat()
    ended = locked.run(code, namespaces=namespaces)
    after = locked.secret.stat()

    assert ended.status == 0
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (
        before.st_mode,
        before.st_uid,
        before.st_mtime_ns,
    )


def test_metadata_shows_in_the_hosts_root_only(locked: Station, namespaces: bool) -> None:
    ended = locked.run("import os; said = os.stat(secret).st_size", namespaces=namespaces)

    assert ended.said == ("ENOENT" if namespaces else "9")
