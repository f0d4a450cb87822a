"""Which imports the model's code is told to do without, and what it hears instead."""

from __future__ import annotations

import pytest

from sanderling.sandbox import BASE_BUILTIN_MODULES, Interpreter
from support.sandbox import error, interpreter, value


@pytest.mark.parametrize("name", BASE_BUILTIN_MODULES)
def test_the_default_modules_can_be_imported(python: Interpreter, name: str) -> None:
    assert value(python, f"import {name}\n{name}.__name__") == name


@pytest.mark.parametrize(
    ("code", "name", "told"),
    [
        ("import os", "os", "open()"),
        ("import os.path", "os.path", "open()"),
        ("from os import path", "os", "open()"),
        ("import subprocess as s", "subprocess", "programs cannot be started"),
        ("import socket", "socket", "network is off"),
        ("import requests", "requests", "network is off"),
        ("from urllib.request import urlopen", "urllib.request", "network is off"),
        ("import asyncio", "asyncio", "parallel(function, items)"),
        ("from concurrent.futures import wait", "concurrent.futures", "parallel(function, items)"),
        ("import json, math", "json", "Authorized imports are"),
        ("__import__('os')", "os", "Authorized imports are"),
        ("exec('import os')", "os", "Authorized imports are"),
        ("eval('__import__(\"os\")', {})", "os", "Authorized imports are"),
        ("def f():\n    import os\nf()", "os", "Authorized imports are"),
    ],
)
def test_others_are_refused_with_what_to_do_instead(
    python: Interpreter, code: str, name: str, told: str
) -> None:
    message = error(python, code)
    assert f"Import of {name} is not allowed. Authorized imports are: [" in message
    assert "'math'" in message
    assert told in message


def test_the_refusal_is_an_import_error(python: Interpreter) -> None:
    code = "try:\n    import os\nexcept ImportError as e:\n    caught = type(e).__name__\ncaught"
    assert value(python, code) == "ImportNotAllowed"


@pytest.mark.parametrize(
    "code",
    [
        "import random\nrandom.SystemRandom().random() < 1",
        "import datetime\ndatetime.datetime.strptime('2020', '%Y').year == 2020",
        "import time\ntime.strptime('2020', '%Y').tm_year == 2020",
    ],
)
def test_libraries_import_what_they_need(python: Interpreter, code: str) -> None:
    assert value(python, code) is True


def test_the_future_can_always_be_imported(python: Interpreter) -> None:
    assert value(python, "from __future__ import annotations\ndef f(x: nothing): pass\n1") == 1


@pytest.mark.parametrize(
    ("entry", "allowed", "refused"),
    [
        ("json", ["import json", "import json.decoder", "from json import loads"], ["import jso"]),
        ("os.path", ["import os.path", "from os import path"], ["import os", "from os import sep"]),
        ("xml.*", ["import xml.dom", "from xml.etree import ElementTree"], ["import xmlrpc"]),
        ("*", ["import os", "import json.decoder"], []),
    ],
)
def test_an_entry_covers_its_submodules(entry: str, allowed: list[str], refused: list[str]) -> None:
    with interpreter("inprocess", additional_authorized_imports=[entry]) as python:
        for code in allowed:
            value(python, code)
        for code in refused:
            assert "is not allowed" in error(python, code)


def test_a_module_that_is_not_installed_is_told_apart() -> None:
    with interpreter("inprocess", additional_authorized_imports=["*"]) as python:
        assert "ModuleNotFoundError: No module named" in error(python, "import not_installed")


def test_one_string_in_the_place_of_a_list_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="list of names"),
        interpreter(additional_authorized_imports="numpy"),
    ):
        pass
