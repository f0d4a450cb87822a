"""Machines of providers, which are processes here, behind the protocols of the providers' SDKs."""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sanderling.errors import MissingExtraError, SandboxUnavailable
from sanderling.sandbox import (
    BlaxelExecutor,
    E2BExecutor,
    ModalExecutor,
    create_interpreter,
)
from sanderling.sandbox.backends._guard import GREETING
from sanderling.sandbox.backends._machine import MachineLink
from sanderling.sandbox.backends._packages import packages_for
from sanderling.sandbox.backends._parcel import boot, parcel
from support.e2b_server import E2BServer
from support.sandbox import error, run, specs, value

if TYPE_CHECKING:
    from sanderling.sandbox import CodeResult, Interpreter
    from support.blaxel_server import BlaxelServer
    from support.machines import Machines
    from support.modal_server import ModalServer

KINDS = ["e2b", "modal", "blaxel"]


class Provider:
    """A provider, and what leads to it."""

    def __init__(self, kind: str, server: Machines) -> None:
        self.kind = kind
        self.server = server
        self.options = server.options if isinstance(server, E2BServer) else {}

    def create(self, **options: Any) -> Interpreter:
        return create_interpreter(self.kind, **{**self.options, **options})


@pytest.fixture(params=KINDS)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    server: Machines = request.getfixturevalue(f"{request.param}_provider")
    server.asked.clear()
    yield Provider(request.param, server)
    server.refuse = ""
    assert server.alive() == []


def test_layers_tell_the_machine_and_the_walls_inside(provider: Provider) -> None:
    with closing(provider.create()) as python:
        assert value(python, "1 + 1") == 2
        assert python.layers["machine"] == os.uname().release
        assert "seccomp" in python.layers


def test_walls_inside_can_be_left_out(provider: Provider) -> None:
    options = {"allow_weaker": True, "additional_authorized_imports": ["subprocess"]}
    with closing(provider.create(**options)) as python:
        code = "import subprocess; subprocess.run(['echo', 'hi'], capture_output=True).stdout"
        assert value(python, code) == b"hi\n"
        assert python.layers["lockdown"] == "not in force: not wanted"


def test_nothing_of_the_providers_environment_is_there(provider: Provider) -> None:
    with closing(provider.create(additional_authorized_imports=["os"])) as python:
        found = value(python, "import os; str(dict(os.environ))")
        assert "hidden" not in found
        assert "work" in found


def test_each_machine_is_ended_before_the_next_one(provider: Provider) -> None:
    with closing(provider.create(additional_authorized_imports=["os"])) as python:
        assert "exit status 7" in error(python, "import os; os._exit(7)")
        assert value(python, "1") == 1
        assert len(provider.server.alive()) == 1


def test_what_the_provider_refuses_is_told(provider: Provider) -> None:
    provider.server.refuse = "no more machines today"
    with (
        closing(provider.create()) as python,
        pytest.raises(SandboxUnavailable, match=r"no more machines today.* Ways out: .*local"),
    ):
        python.open()


def test_a_machine_without_python_is_ended(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\necho 'this is no Python. Sorry'; exit 3")
    fake.chmod(0o755)
    monkeypatch.setattr(provider.server, "programs", str(tmp_path))
    with (
        closing(provider.create()) as python,
        pytest.raises(SandboxUnavailable, match=r"did not start: this is no Python. Sorry\. Ways"),
    ):
        python.open()
    assert provider.server.alive() == []


def test_an_interrupt_while_it_starts_ends_the_machine(provider: Provider) -> None:
    class Interrupted(MachineLink):
        def _await(self, milestone: Any, seconds: float = 60) -> None:
            super()._await(milestone, seconds)
            raise KeyboardInterrupt

    backend = provider.create()._resources.backend  # type: ignore[attr-defined]
    machine = backend._create()
    assert len(provider.server.alive()) == 1
    link = Interrupted(machine)
    with closing(link.socket), contextlib.ExitStack() as stack:
        stack.callback(link.finish)
        with pytest.raises(KeyboardInterrupt):
            link.start({}, offline=False)


def test_what_comes_out_of_the_machine_without_sense_ends_it(provider: Provider) -> None:
    options = {"allow_weaker": True, "additional_authorized_imports": ["*"]}
    with closing(provider.create(**options)) as python:
        # Without the walls inside, code reaches the process that keeps watch.
        code = "import os; os.write(os.open(f'/proc/{os.getppid()}/fd/1', os.O_WRONLY), b'?!.\\n')"
        assert "died" in error(python, f"{code}\nwhile True: pass")
        assert value(python, "1") == 1


SCRIPT = """
from sanderling.sandbox import create_interpreter
python = create_interpreter({kind!r}, **{options!r})
python.open()
print("open")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_process_ends_the_machine(
    kind: str, request: pytest.FixtureRequest, run_python: Callable[[str], str]
) -> None:
    server = request.getfixturevalue(f"{kind}_provider")
    script = SCRIPT.format(kind=kind, options=Provider(kind, server).options)
    if kind == "blaxel":
        script = f"import blaxel.core as c; c.client.with_base_url({server.url!r}){script}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "open\n", done.stderr
    assert server.alive() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_sdk_names_the_extra(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kind, f"{kind}.core", f"{kind}.core.sandbox"):
        monkeypatch.setitem(sys.modules, module, None)
    with (
        closing(create_interpreter(kind)) as python,
        pytest.raises(MissingExtraError, match=rf"pip install 'sanderling\[{kind}\]'"),
    ):
        python.open()


@pytest.mark.parametrize(
    ("kind", "told"), [("e2b", "E2B_API_KEY"), ("modal", "MODAL_TOKEN"), ("blaxel", "BL_API_KEY")]
)
def test_a_missing_key_is_named(kind: str, told: str, tmp_path: Path) -> None:
    script = f"from sanderling.sandbox import create_interpreter as c; c({kind!r}).open()"
    kept = ("PATH", "PYTHONPATH", "LANG")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment["HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    assert "SandboxUnavailable: The sandbox did not start" in done.stderr
    assert told in done.stderr.strip().splitlines()[-1]


# What the providers are asked for


def test_e2b_gets_what_smolagents_would_give_it(e2b_provider: E2BServer) -> None:
    e2b_provider.asked.clear()
    options = {**e2b_provider.options, "template": "mine", "timeout": 77, "envs": {"A": "b"}}
    with E2BExecutor(["math"], None, **options) as python:
        assert python("import math; math.pi > 3").output is True
        ((asked, body),) = e2b_provider.asked
    assert asked == "POST /v2/sandboxes"
    assert isinstance(body, dict)
    wanted = {"templateID": "mine", "timeout": 77, "envVars": {"A": "b"}}
    assert wanted.items() <= body.items()
    assert body["allow_internet_access"] is False


def test_e2b_takes_its_tools_as_it_did_in_the_first_releases(e2b_provider: E2BServer) -> None:
    def twice(number: int) -> int:
        return 2 * number

    with E2BExecutor([], [twice], object(), **e2b_provider.options) as python:
        assert python("twice(4)").output == 8
    with E2BExecutor(tools={"double": twice}, **e2b_provider.options) as python:
        assert python("double(4)").output == 8


def test_e2b_is_online_only_for_packages(e2b_provider: E2BServer) -> None:
    e2b_provider.asked.clear()
    with E2BExecutor(["numpy"], **e2b_provider.options) as python:
        python("1")
        assert [asked for asked, _ in e2b_provider.asked] == [
            "POST /v2/sandboxes",
            "PUT /sandboxes/" + e2b_provider.alive()[0] + "/network",
        ]
    assert e2b_provider.asked[0][1]["allow_internet_access"] is True  # type: ignore[index]
    assert e2b_provider.asked[1][1]["allow_internet_access"] is False  # type: ignore[index]
    with pytest.raises(ValueError, match="allow_weaker=True"):
        E2BExecutor(allow_internet_access=True)


def test_e2b_puts_its_end_off_while_it_is_in_use(e2b_provider: E2BServer) -> None:
    from sanderling.sandbox.backends._e2b import E2BBackend

    backend = E2BBackend(timeout=99, **e2b_provider.options)
    machine = backend._create()
    machine.stay()
    asked, body = e2b_provider.asked[-1]
    assert asked.endswith("/timeout")
    assert body == {"timeout": 99}
    machine.end()
    assert e2b_provider.alive() == []


def test_modal_gets_what_smolagents_would_give_it(modal_provider: ModalServer) -> None:
    modal_provider.asked.clear()
    create = {"timeout": 77, "cpu": 2.0}
    with ModalExecutor(["numpy", "PIL"], app_name="mine", create_kwargs=create) as python:
        assert python("1").output == 1
    asked: dict[str, Any] = dict(modal_provider.asked)
    assert asked["AppGetOrCreate"] == "mine"
    assert asked["SandboxCreateV2"].timeout_secs == 77
    assert asked["SandboxCreateV2"].resources.milli_cpu == 2000
    assert asked["SandboxCreateV2"].network_access.network_access_type == 2, "blocked"
    images = [text for name, text in modal_provider.asked if name == "ImageGetOrCreate"]
    assert any("pip install numpy pillow" in str(text) for text in images)


def test_blaxel_gets_what_smolagents_would_give_it(blaxel_provider: BlaxelServer) -> None:
    blaxel_provider.asked.clear()
    with BlaxelExecutor(
        [], None, sandbox_name="mine", image="blaxel/mine", memory=2048, ttl="1h", region="here"
    ) as python:
        assert python("1").output == 1
        asked: Any = blaxel_provider.asked[0][1]
    assert asked["metadata"]["name"] == "mine"
    assert asked["spec"]["region"] == "here"
    runtime = asked["spec"]["runtime"]
    assert (runtime["image"], runtime["memory"], runtime["ttl"]) == ("blaxel/mine", 2048, "1h")


# Packages


def test_packages_come_from_the_authorized_imports() -> None:
    imports = ["numpy", "PIL", "sklearn.linear_model", "yaml", "os", "json", "*", "bs4.*"]
    assert packages_for(imports) == {
        "numpy": "numpy",
        "PIL": "pillow",
        "sklearn": "scikit-learn",
        "yaml": "pyyaml",
        "bs4": "beautifulsoup4",
    }


@pytest.mark.parametrize("packages", ["numpy", ["--index-url=http://evil"], ["-r x"]])
def test_packages_are_requirements(packages: Any) -> None:
    with pytest.raises(ValueError, match="packages"):
        create_interpreter("e2b", packages=packages)


@pytest.fixture(scope="module")
def with_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has pip, and a package that it can install without a network."""
    folder = tmp_path_factory.mktemp("python")
    try:
        venv.create(folder, with_pip=True)
    except subprocess.CalledProcessError:
        pytest.skip("this Python cannot make an environment with pip")
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "number = 42")
        about = "tiny-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return folder


def test_packages_are_installed_before_the_walls_are_built(
    e2b_provider: E2BServer, with_pip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(e2b_provider, "programs", str(with_pip / "bin"))
    wheel = f"tiny @ {(with_pip / 'tiny-1.0-py3-none-any.whl').as_uri()}"
    options = {**e2b_provider.options, "packages": [wheel]}
    with E2BExecutor(["tiny"], **options) as python:
        assert python("import tiny; tiny.number").output == 42


def test_packages_that_cannot_be_installed_are_told(
    e2b_provider: E2BServer, with_pip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(e2b_provider, "programs", str(with_pip / "bin"))
    options = {**e2b_provider.options, "packages": ["tiny @ file:///no/such.whl"]}
    with (
        E2BExecutor(["tiny"], **options) as python,
        pytest.raises(SandboxUnavailable, match="pip cannot install tiny @ file"),
    ):
        python("1")
    assert e2b_provider.alive() == []


# The process that keeps watch


def test_the_kernel_ends_when_the_host_falls_silent(tmp_path: Path) -> None:
    arguments = {"packages": [], "imports": {}, "weaker": False, "silence": 0.3}
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", boot()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(parcel("guard", arguments))
        process.stdin.flush()
        said = process.stdout.read().decode()  # to the end, though its input stays open
    assert said.strip().startswith(GREETING)
    assert said.strip().endswith("!-9.")
    assert process.wait() == 0


def test_no_word_of_the_guard_is_longer_than_a_line_may_be() -> None:
    from sanderling.sandbox.backends import _guard

    assert len(base64.b64encode(bytes(_guard._PIECE))) < 64 << 10


def test_the_command_survives_a_shell() -> None:
    assert shlex.split(shlex.join(["sh", "-c", boot()]))[2] == boot()


# With an account


LIVE = {
    "e2b": ["E2B_API_KEY"],
    "modal": ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"],
    "blaxel": ["BL_API_KEY", "BL_WORKSPACE"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(600)
def test_with_an_account(kind: str) -> None:
    """Runs where SANDERLING_LIVE names the provider and its keys are set. It costs money."""
    wanted = os.environ.get("SANDERLING_LIVE", "").split(",")
    missing = [name for name in LIVE[kind] if not os.environ.get(name)]
    if kind not in wanted or missing:
        pytest.skip(f"SANDERLING_LIVE={kind} and {', '.join(LIVE[kind])} are not set")
    with closing(create_interpreter(kind, additional_authorized_imports=["numpy"])) as python:
        tools: dict[str, Callable[..., Any]] = {"add": lambda a, b: a + b}
        python.set_tools(specs(tools))
        python.set_variables({"x": [1, 2]})
        result: CodeResult = run(python, "import numpy\nadd(int(numpy.sum(x)), 1)", tools)
        assert result.error is None
        assert result.output == 4
        assert python.layers["machine"]
