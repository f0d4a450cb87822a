from __future__ import annotations

import sys

import pytest

from sanderling.sandbox import create_interpreter
from support.sandbox import interpreter, value


@pytest.mark.parametrize("kind", ["local", "inprocess", "auto"])
def test_an_interpreter_is_made_by_name(kind: str) -> None:
    with interpreter(kind) as python:
        assert value(python, "1 + 1") == 2


def test_auto_has_walls() -> None:
    with interpreter("auto") as python:
        python.open()
        assert "seccomp" in python.layers


def test_an_unknown_name_lists_those_known() -> None:
    with pytest.raises(ValueError, match=r"'e3b'.*local.*inprocess.*auto"):
        create_interpreter("e3b")


@pytest.mark.parametrize("kind", ["local", "inprocess"])
def test_a_module_that_is_not_installed_here_is_told_at_once(kind: str) -> None:
    imports = ["json", "nosuchmodule.deep", "numpy.linalg", "sklearn_of_nobody.*"]
    with pytest.raises(ValueError, match="nosuchmodule") as caught:
        create_interpreter(kind, additional_authorized_imports=imports)
    assert "pip install nosuchmodule sklearn_of_nobody" in str(caught.value)
    assert "numpy" not in str(caught.value)


def test_the_package_of_a_missing_module_goes_by_its_own_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)  # how Python says: not there
    with pytest.raises(ValueError, match="pip install pyyaml"):
        create_interpreter("local", additional_authorized_imports=["yaml"])


def test_elsewhere_a_module_need_not_be_installed_here() -> None:
    for kind in ("docker", "wasm", "auto"):
        create_interpreter(kind, additional_authorized_imports=["nosuchmodule"]).close()


def test_an_unknown_setting_is_refused() -> None:
    for kind in ("local", "docker", "wasm", "inprocess"):
        with pytest.raises(TypeError, match=f'"{kind}" has no setting .*: .*timeout_seconds'):
            create_interpreter(kind, memory_gigabytes=3)
    with pytest.raises(TypeError, match=r"'memory_byte'\. Did you mean 'memory_bytes'\?"):
        create_interpreter("local", memory_byte=3)
    with pytest.raises(ValueError, match=r"not of \[1\]"):
        create_interpreter("local", additional_authorized_imports=[1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="snapshot_bytes must be a whole number"):
        create_interpreter("local", snapshot_bytes=-1)
