"""What Deno refuses to code in Pyodide, whether it asks in Python or in JavaScript."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.sandbox import interpreter, run, value
from support.wasm import denos, require_wasm

if TYPE_CHECKING:
    from sanderling.sandbox import Interpreter

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}


@pytest.fixture(scope="module")
def python() -> Iterator[Interpreter]:
    """One interpreter for most cases: it takes seconds to start."""
    require_wasm()
    with interpreter("wasm", timeout_seconds=30, **ANY) as made:
        yield made


@pytest.fixture(scope="module")
def hasty() -> Iterator[Interpreter]:
    """One with little patience, for what would wait for ever."""
    require_wasm()
    with interpreter("wasm", timeout_seconds=0.5, **ANY) as made:
        yield made


# Walls, from Python


class Listener:
    """Notes what comes in over TCP and UDP, on one port of this machine."""

    def __init__(self) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))

    def reached(self) -> bool:
        return bool(select.select([self._tcp, self._udp], [], [], 0)[0])

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with closing(Listener()) as made:
        yield made


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "import os; os.listdir('/root')",
        "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
        "import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:PORT/')",
        "import subprocess; subprocess.run(['/bin/true'], check=True)",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import os; os.fork()",
        "import os; os.kill(1, 0)",
        "import ctypes; ctypes.CDLL('libc.so.6').getpid()",
        "import js; await js.fetch('http://127.0.0.1:PORT/')",
        "import pyodide_js; await pyodide_js.loadPackage('http://127.0.0.1:PORT/x.whl')",
        "import pyodide.http; pyodide.http.open_url('http://127.0.0.1:PORT/')",
        "import pyodide_js as p; p.mountNodeFS('/host', '/etc'); open('/host/passwd').read()",
        (
            "from pyodide_js import FS; from js import JSON; FS.mkdir('/h')\n"
            "FS.mount(FS.filesystems.NODEFS, JSON.parse('{\"root\": \"/etc\"}'), '/h')\n"
            "open('/h/passwd').read()"
        ),
    ],
)
def test_python_cannot_reach_the_host(hasty: Interpreter, listener: Listener, code: str) -> None:
    assert run(hasty, code.replace("PORT", str(listener.port))).error is not None
    assert not listener.reached()


# Walls, from JavaScript


def js(python: Interpreter, code: str) -> Any:
    return value(python, f"from pyodide.code import run_js\nrun_js({code!r})")


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("Deno.readTextFileSync('/etc/passwd')", "read access"),
        ("Deno.readTextFileSync(location.href.slice(7))", "read access"),
        ("Deno.statSync('/etc/passwd')", "read access"),
        ("Deno.readDirSync('/').next()", "read access"),
        ("Deno.openSync('/dev/null')", "read access"),
        ("Deno.openSync('/proc/self/fd/0')", "read access"),
        ("Deno.writeTextFileSync('/tmp/wasm-was-here', '')", "write access"),
        ("Deno.makeTempFileSync()", "write access"),
        ("Deno.removeSync('/tmp')", "write access"),
        ("Deno.symlinkSync('/etc/passwd', '/tmp/link')", "allow-write"),
        ("Deno.env.get('HOME')", "env access"),
        ("Deno.env.toObject()", "env access"),
        ("Deno.env.set('A', 'b')", "env access"),
        ("new Deno.Command('/bin/true').outputSync()", "run access"),
        ("new Deno.Command(Deno.execPath()).spawn()", "run access"),
        ("Deno.kill(1, 'SIGTERM')", "run access"),
        ("Deno.dlopen('/lib/x.so', {})", "ffi access"),
        ("Deno.listen({ port: 0 })", "net access"),
        ("Deno.listen({ transport: 'unix', path: '/tmp/s' })", "read access"),
        ("Deno.hostname()", "sys access"),
        ("Deno.networkInterfaces()", "sys access"),
        ("process.env.HOME", "env access"),
        ("process.kill(1, 9)", "run access"),
        ("process.dlopen({}, '/lib/x.so')", "ffi access"),
        ("node('fs').readFileSync('/etc/passwd')", "read access"),
        ("node('fs').writeFileSync('/tmp/wasm-was-here', '')", "write access"),
        ("node('fs').existsSync('/etc/passwd')", "read access"),
        ("node('child_process').execFileSync('/bin/true')", "access"),
        ("node('module').createRequire('file:///x.js')('/etc/hostname')", "read access"),
        (
            "node('sqlite').DatabaseSync && new (node('sqlite').DatabaseSync)('/tmp/db')",
            "read access",
        ),
        ("new (node('sqlite').DatabaseSync)(':memory:').exec(`attach '/tmp/db' as x`)", "attached"),
        ("node('v8').writeHeapSnapshot('/tmp/heap')", "write access"),
        ("node('inspector').open(0)", "sys access"),
        ("node('os').userInfo()", "sys access"),
        ("node('fs').fstatSync(5)", "EBADF"),
    ],
)
def test_javascript_is_refused(python: Interpreter, code: str, refusal: str) -> None:
    attempt = (
        "const node = (name) => process.getBuiltinModule(`node:${name}`);"
        f"let told; try {{ {code}; told = 'done' }} catch (error) {{ told = `${{error}}` }} told"
    )
    told = js(python, attempt)
    assert refusal in told
    assert "NotCapable" in told or refusal in ("attached", "EBADF", "allow-write")


def test_no_permission_can_be_got_back(python: Interpreter) -> None:
    names = ["read", "write", "net", "env", "run", "ffi", "sys", "import"]
    for what in ("query", "request"):
        code = f"{json.dumps(names)}.map((name) => Deno.permissions.{what}Sync({{ name }}).state)"
        assert "granted" not in js(python, f"{code}.join()")


def test_the_flags_of_the_engine_cannot_be_changed(python: Interpreter) -> None:
    # (memory i64 1) (func (export "r") (param i64) (result i64) local.get 0 i64.load)
    module = (
        "0061736d0100000001060160017e017e030201000503010401070501017200000a0901070020002903000b"
    )
    code = (
        "for (const flag of ['--no-wasm-bounds-checks', '--no-wasm-trap-handler'])"
        " process.getBuiltinModule('node:v8').setFlagsFromString(flag);"
        "const { r } = new WebAssembly.Instance(new WebAssembly.Module("
        f"Uint8Array.fromHex('{module}'))).exports;"
        "let told = `${r(0n)}`; try { told += r(0x20000n) } catch (error) { told += error } told"
    )
    assert js(python, code) == "0RuntimeError: memory access out of bounds"


# What only works while JavaScript's own loop runs, which in the kernel's thread never does: so a
# thread of the code's own attempts it.
ATTEMPTS = {
    "fetch('http://127.0.0.1:PORT/')": "net access",
    "fetch('file:///etc/passwd')": "read access",
    "Deno.connect({ port: PORT })": "net access",
    "Deno.connect({ transport: 'unix', path: '/run/docker.sock' })": "read access",
    "new Promise((_, no) => { new WebSocket('ws://127.0.0.1:PORT/').onerror = no })": "net access",
    "failing(node('net').connect(PORT, '127.0.0.1'))": "net access",
    "failing(node('tls').connect(PORT, '127.0.0.1'))": "net access",
    "failing(node('http').get('http://127.0.0.1:PORT/'))": "net access",
    "node('dns').promises.lookup('localhost')": "EPERM",
    "Deno.resolveDns('localhost', 'A')": "net access",
    "Deno.serve({ port: 0 }, () => new Response())": "net access",
    "new Deno.Command('/bin/true').output()": "run access",
    "import('http://127.0.0.1:PORT/x.js')": "import access",
    "import('jsr:@std/path')": "--no-remote",
    "import('npm:chalk')": "--no-npm",
    "import('file:///etc/passwd', { with: { type: 'text' } })": "read access",
    "import('PYODIDE')": "read access",
    "node('fs').promises.readFile('/etc/hostname')": "read access",
    "caches.open('x')": "Failed to create",
    "navigator.gpu.requestAdapter().then((gpu) => gpu ?? Promise.reject('no gpu'))": "no gpu",
}
THREAD = """
const node = (name) => process.getBuiltinModule(`node:${name}`);
for (const fault of ["error", "unhandledrejection"])
  self.addEventListener(fault, (event) => event.preventDefault());
const failing = (made) => new Promise((_, no) => made.on("error", no));
self.onmessage = async ({ data: [length, bytes] }) => {
  const told = {};
  for (const [name, attempt] of Object.entries({ ATTEMPTS })) {
    const late = new Promise((done) => setTimeout(done, 3000, "LATE"));
    try {
      told[name] = `DONE ${await Promise.race([attempt(), late])}`;
    } catch (error) {
      told[name] = `${error.error ?? error.message ?? error}`;
    }
  }
  // UDP says nothing when it fails; the listener tells whether it did.
  const udp = node("dgram").createSocket("udp4");
  udp.on("error", () => {});
  try { udp.send("x", PORT, "127.0.0.1"); } catch {}
  await new Promise((done) => setTimeout(done, 300));
  const text = new TextEncoder().encode(JSON.stringify(told));
  bytes.set(text);
  Atomics.store(length, 0, text.length);
  Atomics.notify(length, 0);
};
"""


def test_a_thread_of_javascript_is_refused(python: Interpreter, listener: Listener) -> None:
    value(python, "1")
    pyodide = Path(f"/proc/{denos()[0]}/cmdline").read_text().split("\0")[-2]
    attempts = ", ".join(f"{json.dumps(code)}: async () => {code}" for code in ATTEMPTS)
    thread = THREAD.replace("{ ATTEMPTS }", f"{{ {attempts} }}")
    thread = thread.replace("PORT", str(listener.port)).replace("PYODIDE", pyodide)
    code = (
        f"const url = URL.createObjectURL(new Blob([{json.dumps(thread)}]));"
        "const thread = new Worker(url, { type: 'module' });"
        "const length = new Int32Array(new SharedArrayBuffer(4));"
        "const bytes = new Uint8Array(new SharedArrayBuffer(1 << 16));"
        "thread.postMessage([length, bytes]);"
        "Atomics.wait(length, 0, 0, 20000);"
        "thread.terminate();"
        "new TextDecoder().decode(bytes.slice(0, length[0]))"
    )
    told: dict[str, str] = json.loads(js(python, code))
    assert len(told) == len(ATTEMPTS)
    unlike = {
        attempt: (got, refusal)
        for (attempt, got), refusal in zip(told.items(), ATTEMPTS.values(), strict=True)
        if refusal not in got
    }
    assert unlike == {}
    assert not listener.reached()


def test_nothing_of_the_host_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    require_wasm()
    monkeypatch.setenv("SECRET_KEY", "hidden")
    with interpreter("wasm", **ANY) as python:
        (pid,) = denos()[-1:]
        assert b"hidden" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert "hidden" not in value(python, "import os; str(os.environ)")
