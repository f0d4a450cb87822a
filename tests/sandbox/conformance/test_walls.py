"""What code cannot do to the host: through the walls, or through the protocol."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sanderling.errors import SandboxTimeout, SandboxViolation

if TYPE_CHECKING:
    from support.places import Driven, Place

# Speaks on the kernel's own wire, which code can reach.
SAY = """
import os, json, sys
STEP = int(sys._getframe().f_code.co_filename.strip("<>").split()[1])
NEW = 1_000_000
def send(data):
    while data: data = data[os.write({wire}, data):]
def say(**fields):
    text = json.dumps({{"b": [], **fields}}).encode()
    send(len(text).to_bytes(4, "little") + bytes(4) + text)
def call(**fields):
    usual = dict(id=NEW, step=STEP, name="x", args=[], kwargs={{}}, alone=True)
    say(t="call", **{{**usual, **fields}})
def done(**fields):
    usual = dict(id=STEP, v=None, text="", error=None, threads=0, interrupted=False)
    say(t="done", **{{**usual, **fields}})
"""


def speech(place: Place) -> str:
    if place.wire is None:
        pytest.skip("code cannot reach the wire")
    return SAY.format(wire=place.wire)


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 80), 1)",
        "import socket as s; s.socket(type=s.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 53))",
        "import urllib.request; urllib.request.urlopen('http://example.com', timeout=1)",
        "import subprocess; subprocess.run(['/bin/true'], check=True)",
        "open('/etc/shadow').read()",
        "open('/new', 'w')",
        "open('../outside', 'w')",
        "import os; os.kill(1, 9)",
        "import os; os.setuid(0)",
        "import ctypes; 1 / (ctypes.CDLL(None).ptrace(16, 1, 0, 0) + 1)",
    ],
)
def test_the_walls_stand(walled: Place, python: Driven, code: str) -> None:
    assert python.error(code)
    assert python.value("open('mine', 'w').write('x')") == 1


def test_no_file_of_the_host_is_there(walled: Place, python: Driven, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    secret.chmod(0o644)
    told = python.error(f"open({str(secret)!r})")
    assert "only files in the work folder" in told


def test_nothing_of_the_hosts_environment_is_there(
    walled: Place, start: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    monkeypatch.setenv("HTTP_PROXY", "http://user:hidden@proxy")
    python = start()
    assert "hidden" not in python.value("import os; str(dict(os.environ))")


@pytest.mark.parametrize(
    "code",
    [
        "send(b'garbage' * 100)",
        "send(b'\\xff' * 8)",
        "send(b'\\2\\0\\0\\0\\0\\0\\0\\0[]')",
        "send((200_000).to_bytes(4, 'little') + bytes(4) + b'[' * 200_000)",
        "say(t='no such')",
        "say(t='done')",
        "say(t='done', id=STEP)",
        "done(threads='none')",
        "done(error='a text')",
        "done(v={'$': 'no such type'})",
        "done(v={'$': 'bytes', 'i': 7})",
        "done(v={'$': 'ndarray', 't': '|O', 's': [1], 'i': 0, 'scalar': False})",
        "done(text='x' * 10_000_000)",
        "say(t='ready', id=STEP, layers={}, versions={})",
        "call(); call()",
        "call(id=-1)",
        "call(id='1')",
        "call(name='no name')",
        "call(name=['x'])",
        "call(args={}, kwargs=[])",
        "say(t='out', id=STEP, text=5)",
        "while True: say(t='out', id=STEP, text='x' * 100_000)",
    ],
)
def test_what_breaks_the_protocol_is_killed(walled: Place, python: Driven, code: str) -> None:
    result = python.run(f"{speech(walled)}{code}\nwhile True: pass")
    assert isinstance(result.error, SandboxViolation), result
    assert python.value("1") == 1


def test_more_calls_than_a_step_may_make_are_a_violation(
    walled: Place, start: Callable[..., Driven]
) -> None:
    python = start(max_tool_calls=40)
    calls = "for n in range({}): call(id=NEW + n, alone=False)"
    assert python.value(f"{speech(walled)}{calls.format(40)}\n'made'") == "made"
    result = python.run(f"{speech(walled)}{calls.format(41)}\nwhile True: pass")
    assert isinstance(result.error, SandboxViolation), result


def test_a_forged_end_of_another_step_is_dropped(walled: Place, python: Driven) -> None:
    code = f"{speech(walled)}for n in (0, STEP - 1, STEP + 1): done(id=n)\n'genuine'"
    assert python.value(code) == "genuine"
    assert python.value("'second'") == "second"


def test_a_forged_call_is_a_call(walled: Place, start: Callable[..., Driven]) -> None:
    python = start()
    seen: list[int] = []
    python.use(note=seen.append)
    python.run(f"{speech(walled)}call(name='note', args=[5])")
    assert seen == [5]


def test_half_a_message_meets_the_clock(walled: Place, start: Callable[..., Driven]) -> None:
    python = start(timeout_seconds=0.3)
    code = (
        f"{speech(walled)}send((16).to_bytes(4, 'little') + bytes(4) + b'half')\n"
        "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"
    )
    assert isinstance(python.run(code).error, SandboxTimeout)
    assert python.value("1") == 1
