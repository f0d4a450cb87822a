"""The container: what it has, what it lacks, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sanderling.errors import SandboxCrashed, SandboxTimeout, SandboxUnavailable
from sanderling.sandbox import create_interpreter
from support.docker_engine import EMPTY_IMAGE, IMAGE, Engine
from support.sandbox import error, interpreter, run, value

ANY: dict[str, Any] = {"additional_authorized_imports": ["*"]}
DEAF = "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"


@pytest.fixture
def options(docker_engine: Engine) -> dict[str, Any]:
    """Settings of an interpreter."""
    return {"host": docker_engine.host, "image": IMAGE, **ANY}


@pytest.fixture
def altered_docker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, docker_engine: Engine
) -> Callable[[str], None]:
    """Puts a docker command on the PATH whose ``run`` has other options than it is given."""
    real = shutil.which("docker")

    def alter(change: str) -> None:
        script = tmp_path / "bin" / "docker"
        script.parent.mkdir()
        script.write_text(
            f"#!{sys.executable}\nimport os, sys\nargs = sys.argv[1:]\n"
            f"if 'run' in args:\n    run = args.index('run') + 1\n    {change}\n"
            f"os.execv({real!r}, ['docker', *args])\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")

    return alter


# What it has and lacks


def test_the_layers_are_told(options: dict[str, Any]) -> None:
    with interpreter("docker", **options) as python:
        python.open()
        assert python.layers["container"] == {
            "network": "none",
            "root": "read-only",
            "user": 65534,
            "capabilities": "none",
            "no_new_privs": True,
            "seccomp": True,
            "memory": 1 << 30,
            "processes": 64,
        }
        assert {"landlock", "seccomp", "rlimits"} <= python.layers.keys()
        assert "lockdown" not in python.layers


def test_the_engine_sees_the_walls(docker_engine: Engine, options: dict[str, Any]) -> None:
    with interpreter("docker", cpus=1.5, **options) as python:
        python.open()
        (name,) = docker_engine.containers()
        (found,) = json.loads(docker_engine.docker("inspect", name))
    host = found["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"]) == (1 << 30, 1 << 30)
    assert (host["PidsLimit"], host["NanoCpus"]) == (64, 1_500_000_000)
    assert host["AutoRemove"] is True
    assert host["LogConfig"]["Type"] == "none"  # or the engine would keep all frames on its disk
    assert not host["Binds"]
    assert not host["PortBindings"]
    assert found["Mounts"] == []


def test_descriptors_and_environment_are_known(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = {"httpProxy": "http://user:hidden@proxy", "noProxy": "hidden"}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": proxy}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("SECRET_KEY", "hidden")
    own: dict[str, Any] = {"container_run_kwargs": {"environment": {"MINE": "seen"}}}
    with interpreter("docker", **options, **own) as python:
        seen = value(python, "import os; dict(os.environ)")
        assert "hidden" not in str(seen)
        assert seen["MINE"] == "seen"
        assert seen["HOME"] == seen["TMPDIR"] == value(python, "os.getcwd()") == "/work"
        code = (
            "def is_open(fd):\n"
            "    try: return bool(os.fstat(fd))\n"
            "    except OSError: return False\n"
            "[fd for fd in range(256) if is_open(fd)]"
        )
        assert value(python, code) == [0, 1, 2, 3, 4]
        assert value(python, "import sys; sys.argv[1:], [p for p in sys.path if not p]") == ([], [])
        assert value(python, "sorted(set(sys.modules) & {'lockdown', 'contained'})")


def test_libraries_work_behind_the_walls(docker_engine: Engine, options: dict[str, Any]) -> None:
    with interpreter("docker", **options) as python:
        code = (
            "import tempfile, concurrent.futures, asyncio, json, decimal\n"
            "with tempfile.NamedTemporaryFile() as f: ok = [f.write(b'x') == 1]\n"
            "async def f(): return await asyncio.to_thread(lambda: True)\n"
            "ok.append(await f())\n"
            "with concurrent.futures.ThreadPoolExecutor(8) as p: ok += p.map(bool, [1, 2])\n"
            "all(ok)"
        )
        assert value(python, code) is True
        if docker_engine.libraries:
            code = "import numpy as n; a = n.eye(50) * 2; float((n.linalg.inv(a) @ a).sum())"
            assert value(python, code) == 50


def test_memory_ends_in_an_error_and_the_variables_stay(options: dict[str, Any]) -> None:
    with interpreter("docker", memory_bytes=200 << 20, **options) as python:
        told = error(python, "kept = 1\nx = []\nwhile True: x.append(bytearray(1 << 20))")
        assert "MemoryError" in told
        assert value(python, "n = len(x); x.clear(); kept, 100 < n < 200") == (1, True)
        shared = (
            "import mmap\nm = mmap.mmap(-1, 400 << 20)\n"
            "for _ in range(400): m.write(bytes(1 << 20))"
        )
        result = run(python, shared)
        assert isinstance(result.error, SandboxCrashed)
        assert "SIGKILL, perhaps for want of memory" in str(result.error)
        assert value(python, "1") == 1


def test_the_work_folder_has_a_size_and_ends_with_the_container(options: dict[str, Any]) -> None:
    with interpreter("docker", workdir_bytes=5 << 20, **options) as python:
        assert "No space left" in error(
            python, "with open('f', 'wb') as f: f.write(bytes(6 << 20))"
        )
        value(python, "open('g', 'w').close()")
        assert "so is the work folder" in error(python, "import os; os._exit(1)")
        assert value(python, "import os; os.listdir()") == []


def test_processes_are_limited(options: dict[str, Any]) -> None:
    extra: dict[str, Any] = {"pids_limit": 10}
    with interpreter("docker", container_run_kwargs=extra, **options) as python:
        code = (
            "import threading\n"
            "e = threading.Event()\n"
            "for n in range(100): threading.Thread(target=e.wait).start()"
        )
        assert "can't start new thread" in error(python, code)
        assert value(python, "e.set(); n < 10") is True


def test_a_volume_can_be_read(options: dict[str, Any], tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "data").write_text("open")
    volumes: dict[str, Any] = {"volumes": {str(tmp_path): {"bind": "/data", "mode": "ro"}}}
    with interpreter("docker", container_run_kwargs=volumes, **options) as python:
        assert value(python, "open('/data/data').read()") == "open"
        assert error(python, "open('/data/data', 'w')")


# What is missing


def test_an_engine_without_our_walls_inside_still_has_its_own(
    options: dict[str, Any], tmp_path: Path, altered_docker: Callable[[str], None]
) -> None:
    old = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["landlock_create_ruleset"], "action": "SCMP_ACT_ERRNO"}],
    }
    (tmp_path / "old.json").write_text(json.dumps(old))
    altered_docker(f"args[run:run] = ['--security-opt', 'seccomp={tmp_path}/old.json']")
    with interpreter("docker", **options) as python:
        assert value(python, "1 + 1") == 2
        assert python.layers["lockdown"].startswith("not in force: landlock")  # type: ignore[attr-defined]  # a text
        assert error(python, "import socket; socket.create_connection(('192.0.2.1', 80), 1)")
        assert error(python, "open('/new', 'w')")
        told = error(python, "import os; os.kill(1, 9); os.kill(1, 15)\nwhile True: pass")
        assert "The interpreter died" in told
        assert value(python, "2") == 2


@pytest.mark.parametrize(
    ("wall", "told"),
    [
        ("--read-only", "'root': 'writable'"),
        ("--cap-drop=ALL", "'capabilities': '0x"),
        ("--security-opt=no-new-privileges", "'no_new_privs': False"),
        ("--user=65534:65534", "'user': 0"),
        ("--pids-limit=64", "'processes': None"),
    ],
)
def test_an_engine_that_does_not_build_the_walls_is_not_used(
    docker_engine: Engine,
    options: dict[str, Any],
    altered_docker: Callable[[str], None],
    wall: str,
    told: str,
) -> None:
    altered_docker(f"args.remove({wall!r})")
    with (
        interpreter("docker", **options) as python,
        pytest.raises(SandboxUnavailable, match="weaker walls than were asked for") as caught,
    ):
        python.open()
    assert told in str(caught.value)
    python.close()
    assert docker_engine.containers() == []


def test_weaker_walls_are_those_of_the_engine(options: dict[str, Any]) -> None:
    weaker: dict[str, Any] = {
        "allow_weaker": True,
        "container_run_kwargs": {"read_only": False, "user": "0:0"},
    }
    with interpreter("docker", **options, **weaker) as python:
        assert value(python, "open('/new', 'w').write('x')") == 1
        assert python.layers["container"]["root"] == "writable"  # type: ignore[index]  # a dict
        assert python.layers["lockdown"] == "not in force: not wanted"


def test_without_a_docker_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        interpreter("docker") as python,
        pytest.raises(SandboxUnavailable, match=r"no docker command on the PATH\. Ways out: "),
    ):
        python.open()


def test_without_an_engine(docker_engine: Engine, tmp_path: Path) -> None:
    with (
        interpreter("docker", host=f"unix://{tmp_path}/none", image=IMAGE) as python,
        pytest.raises(SandboxUnavailable, match=r"engine does not answer: .*none.* Ways out: "),
    ):
        python.open()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"image": "127.0.0.1:1/no/such:image"}, "is not there and cannot be pulled: "),
        ({"image": EMPTY_IMAGE}, "the image sanderling-test-empty has no python3 that runs: "),
        ({"dockerfile_content": "FROM scratch\nCOPY no such"}, "cannot be built: "),
        ({"dockerfile_content": "FROM scratch\n", "build_new_image": False}, "build_new_image=Fal"),
        ({"image": IMAGE, "packages": ["no-such"]}, "cannot be built: "),
    ],
    ids=str,
)
def test_without_an_image(docker_engine: Engine, settings: dict[str, Any], told: str) -> None:
    with (
        interpreter("docker", host=docker_engine.host, **settings) as python,
        pytest.raises(SandboxUnavailable, match=told) as caught,
    ):
        python.open()
    assert "Ways out: " in str(caught.value)
    assert docker_engine.containers() == []


def test_an_image_is_built_once(docker_engine: Engine) -> None:
    dockerfile = f"FROM {IMAGE}\nENV MARK=here\n"
    before = docker_engine.docker("images", "--quiet", "sanderling-sandbox")
    settings = {"host": docker_engine.host, "dockerfile_content": dockerfile, **ANY}
    for _ in range(2):
        with interpreter("docker", **settings) as python:
            assert value(python, "import os; os.environ['MARK']") == "here"
    after = docker_engine.docker("images", "--quiet", "sanderling-sandbox")
    assert len(after.split()) == len(before.split()) + 1
    with interpreter("docker", build_new_image=False, **settings) as python:
        assert value(python, "1") == 1


# What is left


def test_a_container_that_is_removed_under_the_code(
    docker_engine: Engine, options: dict[str, Any]
) -> None:
    def remove() -> None:
        docker_engine.docker("rm", "--force", *docker_engine.containers())

    with interpreter("docker", {"remove": remove}, **options) as python:
        result = run(python, "remove()\nwhile True: pass", {"remove": remove})
        assert isinstance(result.error, SandboxCrashed)
        assert value(python, "1") == 1


def test_a_kernel_that_is_deaf_to_its_host_is_removed(
    docker_engine: Engine, options: dict[str, Any]
) -> None:
    tools = {"big": lambda: bytes(5_000_000)}
    with interpreter("docker", tools, timeout_seconds=0.5, **options) as python:
        code = f"import os, threading\nthreading.Thread(target=big).start()\n{DEAF}"
        stuck = f"import os, time\ntime.sleep(0)\nos.close(4)\n{DEAF}"
        assert isinstance(run(python, code, tools).error, SandboxTimeout)
        assert isinstance(run(python, stuck, tools).error, SandboxTimeout)
        assert value(python, "1") == 1
    assert docker_engine.containers() == []


HOST = """
import sys
from sanderling.sandbox import create_interpreter
python = create_interpreter("docker", host=sys.argv[2], image=sys.argv[3])
try:
    for event in python.execute("print('x')" + ("\\n" + sys.argv[4]) * (sys.argv[1] == "busy")):
        print("ready", flush=True)
        if sys.argv[1] == "busy":
            continue
except RuntimeError:
    pass
if sys.argv[1] == "idle":
    print("idle", flush=True)
    input()
"""


def host(engine: Engine, mode: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOST, mode, engine.host, IMAGE, DEAF],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    for _ in range(2 if mode == "idle" else 1):
        assert started.stdout.readline()
    return started


@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_no_container_outlives_a_host_that_is_killed(docker_engine: Engine, mode: str) -> None:
    killed = host(docker_engine, mode)
    (name,) = docker_engine.containers()
    watch = subprocess.Popen(
        [
            *("docker", "--host", docker_engine.host, "events", "--since=10m"),
            *(f"--filter=container={name}", "--filter=event=destroy"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    killed.kill()
    killed.communicate()
    assert watch.stdout is not None
    assert "destroy" in watch.stdout.readline()
    watch.kill()
    watch.communicate()
    assert docker_engine.containers() == []


def test_a_host_that_ends_leaves_nothing(docker_engine: Engine) -> None:
    ended = host(docker_engine, "ends")
    ended.communicate()
    assert ended.returncode == 0
    assert docker_engine.containers() == []


def test_the_terminals_interrupt_does_not_reach_it(docker_engine: Engine) -> None:
    started = host(docker_engine, "idle")
    os.killpg(started.pid, signal.SIGINT)
    started.communicate()  # the host itself ends, as Python does, and removes its container
    assert docker_engine.containers() == []


def test_a_start_that_is_cancelled_leaves_nothing(
    docker_engine: Engine, options: dict[str, Any]
) -> None:
    async def main() -> None:
        python = create_interpreter("docker", **options)
        task = asyncio.create_task(python.aopen())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await python.aclose()

    asyncio.run(main())
    assert docker_engine.containers() == []


def test_it_can_be_closed_while_it_starts(docker_engine: Engine, options: dict[str, Any]) -> None:
    with interpreter("docker", **options) as python:
        closing = threading.Timer(0.1, python.close)
        closing.start()
        with contextlib.suppress(SandboxUnavailable):
            python.open()
        closing.join()
        assert docker_engine.containers() == []
