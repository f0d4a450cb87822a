"""Each Landlock ABI up to the kernel's own, from the least on."""

import errno

import pytest

from sanderling.sandbox.lockdown import LockdownError
from sanderling.sandbox.lockdown._landlock import abi
from support.locked import Station

RESTRICT = """
import os, socket, sys
sys.path.insert(0, package.removesuffix("/lockdown"))
from lockdown._linux import prctl
from lockdown._landlock import restrict
from lockdown._rules import rules
from lockdown._seccomp import load
prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
restrict(["/nowhere", "/dev/urandom"], [workdir], version={version})
if {version} < 3: load(rules(os.getpid(), truncate_by_path=False))
"""


try:
    VERSIONS = range(1, abi() + 1)
except LockdownError:
    VERSIONS = range(1, 1)  # `locked` says why


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("said = open(secret).read()", "EACCES"),
        ("said = open(secret, 'w')", "EACCES"),
        ("said = os.listdir(outside)", "EACCES"),
        ("open('x', 'w').write('x'); open('x', 'w').write('y'); said = open('x').read()", "y"),
        ("os.mkdir('d'); open('d/x', 'w').close(); said = os.listdir('d')", "['x']"),
        ("said = len(open('/dev/urandom', 'rb').read(1))", "1"),
        ("said = open('/dev/zero')", "EACCES"),
    ],
)
def test_files(locked: Station, version: int, code: str, said: str) -> None:
    ended = locked.run(RESTRICT.format(version=version) + f"os.chdir(workdir)\n{code}", lock=False)

    assert ended.said == said


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "code",
    ["os.truncate(secret, 0)", "os.open(secret, os.O_TRUNC)", "os.open(secret, 3 | os.O_TRUNC)"],
)
def test_nothing_outside_is_truncated(locked: Station, version: int, code: str) -> None:
    ended = locked.run(RESTRICT.format(version=version) + code, lock=False)

    assert ended.said in (errno.errorcode[errno.EPERM], errno.errorcode[errno.EACCES])
    assert locked.secret.read_text() == "keep this"


def test_tcp_and_signals_are_landlocks_too(locked: Station) -> None:
    if max(VERSIONS) < 6:
        pytest.skip("this kernel's Landlock has no scopes")
    ended = locked.run(
        RESTRICT.format(version=max(VERSIONS)) + "def code(call, *arguments):\n"
        "    try: return call(*arguments)\n"
        "    except OSError as error: return error.errno\n"
        "tcp = socket.socket(); unix = socket.socket(socket.AF_UNIX)\n"
        "said = [code(tcp.connect, ('127.0.0.1', 9)), code(tcp.bind, ('127.0.0.1', 0)),\n"
        "        code(os.kill, os.getppid(), 0)]",
        lock=False,
    )

    assert ended.said == str([errno.EACCES, errno.EACCES, errno.EPERM])


@pytest.mark.parametrize(
    "code",
    [
        "open('x', 'w').write('#!/bin/true'); os.chmod('x', 0o755); os.execv('x', ['x'])",
        "os.execv('/bin/true', ['true'])",
        "os.mkfifo('p')",
        "socket.socket(socket.AF_UNIX).bind('s')",
    ],
)
def test_nothing_runs_and_nothing_but_files_is_made_in_the_work_folder(
    locked: Station, code: str
) -> None:
    version = max(VERSIONS)
    restrict = RESTRICT.format(version=version)
    ended = locked.run(f"{restrict}os.chdir(workdir)\n{code}", lock=False)

    assert ended.said == ("EPERM" if version < 3 else "EACCES")  # seccomp is there, too
