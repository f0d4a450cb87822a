from __future__ import annotations

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


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="memory_gigabytes"):
        create_interpreter("local", memory_gigabytes=3)
