"""What the model reads when it runs into a wall: which, why, what to do instead, and no more."""

from __future__ import annotations

import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sanderling

if TYPE_CHECKING:
    from support.places import Driven, Place

NETWORK = "the network is off in the sandbox; use a tool"
PROGRAMS = "other programs cannot be started in the sandbox; do it in Python, or use a tool"
PROCESSES = "no process can be started in the sandbox"
SIGNALS = "other processes are out of reach"
FILES = "only files in the work folder (the current directory) can be opened"
POWER = "the sandbox does not allow this operation"
WALLS = [
    ("import socket; socket.create_connection(('127.0.0.1', 80), 1)", NETWORK),
    ("import socket; s = socket.socket(); s.connect(('192.0.2.1', 80))", NETWORK),
    ("import urllib.request as u; u.urlopen('http://example.com', timeout=1)", NETWORK),
    ("import http.client as h; h.HTTPConnection('192.0.2.1').request('GET', '/')", NETWORK),
    ("import subprocess; subprocess.run(['ls'])", PROGRAMS),
    ("import subprocess; subprocess.run('ls', shell=True)", PROGRAMS),
    ("import os; os.popen('ls').read()", PROGRAMS),
    ("import os; os.system('ls')", PROGRAMS),
    ("import os; os.execv('/bin/ls', ['ls'])", PROGRAMS),
    ("import os; os.fork()", PROCESSES),
    ("import multiprocessing as m; m.Process(target=print).start()", PROCESSES),
    ("import concurrent.futures as c; c.ProcessPoolExecutor(2).submit(print)", PROCESSES),
    ("open('/etc/shadow').read()", FILES),
    ("open('/root/new', 'w')", FILES),
    ("import pathlib; pathlib.Path('/home/me/data.csv').read_text()", FILES),
    ("import os; os.listdir('/root')", FILES),
    ("import shutil; shutil.copy('/etc/shadow', '.')", FILES),
    ("import os; os.kill(1, 9)", SIGNALS),
    ("import os; os.setuid(0)", POWER),
    ("import os; os.chroot('.')", POWER),
]


@pytest.mark.parametrize(("code", "hint"), WALLS, ids=[code for code, _ in WALLS])
def test_a_wall_says_what_to_do_instead(
    walled: Place, python: Driven, code: str, hint: str
) -> None:
    told = python.error(f"value = 1\n{code}  # here")
    assert hint in told.rpartition("\nHint: ")[2]
    assert f"{code}  # here" in told  # the model's own line
    assert "line 2" in told


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import requests", f"Import of requests is not allowed. .*And {NETWORK}"),
        ("import subprocess", f"Import of subprocess is not allowed. .*And {PROGRAMS}"),
        ("import os", "Import of os is not allowed.*Open files of the work folder with open()"),
        ("from os import path", "Import of os is not allowed"),
        ("import pandas as pd", "Authorized imports are: .*'math'"),
    ],
)
def test_an_import_says_which_are_allowed(
    place: Place, start: Callable[..., Driven], code: str, hint: str
) -> None:
    python = start(additional_authorized_imports=[])
    told = python.error(code)
    assert told.splitlines()[-1].startswith("ImportNotAllowed: Import of ")
    assert re.search(hint.replace("(", r"\(").replace(")", r"\)"), told)
    assert code in told


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("my_total = 1\nmy_totl", "my_total"),
        ("import math\nmath.sqroot(2)", "sqrt"),
        ("[].apend(1)", "append"),
    ],
)
def test_a_misspelt_name_is_put_right(python: Driven, code: str, meant: str) -> None:
    assert f"Did you mean: '{meant}'?" in python.error(code)


# Paths of the host

FAILING = st.sampled_from(
    [
        "import json; json.loads('{')",
        "import statistics; statistics.mean([])",
        "import decimal; decimal.Decimal('x')",
        "import asyncio\nasync def f(): 1 / 0\nawait f()",
        "import re; re.compile('(')",
        "import csv; csv.reader(5)",
        "import zoneinfo; zoneinfo.ZoneInfo('No/Where')",
        "import sqlite3; sqlite3.connect('/no/where')",
        "import ast; ast.parse('(')",
        "import numpy; numpy.ones(3) @ numpy.ones(4)",
        "import numpy; numpy.load('none.npy')",
        "from numpy import no_such_name",
        "from json import no_such_name",
        "import no_such_module",
        "import json.no_such_module",
        "import json; json.no_such_name",
        "import importlib; importlib.import_module('no.such')",
        "import pickle; pickle.dumps(lambda: 0)",
        "import tempfile; tempfile.TemporaryDirectory(dir='none')",
        "import tempfile, os\nwith tempfile.TemporaryDirectory() as d: open(d + '/none')",
        "import os; open(os.path.abspath('none'))",
        "import os; open(os.getcwd() + '/none')",
        "import os; os.chdir('none')",
        "import os; os.listdir(os.path.abspath('none'))",
        "import os; raise ValueError(os.getcwd())",
        "import os; raise ValueError(os.__file__)",
        "import sys; raise ValueError(sys.prefix, sys.path, sys.executable)",
        "import sys; raise ValueError(str(sys.modules['__main__']), sys.modules)",
        "import json; raise ValueError(repr(json))",
        "import pathlib; (pathlib.Path.cwd() / 'none').read_text()",
        "import shutil; shutil.copy('none', 'other')",
        "import zipfile; zipfile.ZipFile('none')",
        "import subprocess; subprocess.run(['ls'], cwd='none')",
        "import urllib.request; urllib.request.urlopen('http://192.0.2.1', timeout=1)",
        "import concurrent.futures as c\nc.ProcessPoolExecutor(1).submit(print)",
        "import inspect; inspect.getsource(print)",
        "import tokenize; tokenize.open('none')",
        "import runpy; runpy.run_path('none.py')",
        "import doctest; doctest.testfile('none')",
        "import logging.config; logging.config.fileConfig('none')",
        "import typing; typing.NamedTuple('A', 5)",
        "exec(compile('1 / 0', '<mine>', 'exec'))",
        "def f(): f()\nf()",
        "x = = 1",
    ]
)
AROUND = st.sampled_from(
    [
        "{}",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n{indented}",
        """\
import traceback
try:
{indented}
except BaseException:
    traceback.print_exc()
    raise""",
        "import warnings\nwarnings.simplefilter('always')\nwarnings.warn('careful')\n{}",
        """\
import logging
try:
{indented}
except BaseException as e:
    logging.exception('it failed')
    raise RuntimeError(repr(e)) from e""",
        "def work():\n{indented}\nwork()",
    ]
)


@pytest.fixture
def hidden(place: Place) -> list[str]:
    """Where things lie on this machine."""
    paths = sysconfig.get_paths()
    source = Path(sanderling.__file__).parent
    known = {
        sys.prefix,
        str(Path(sys.prefix).resolve()),
        sys.executable,
        str(Path(sys.executable).resolve()),
        paths["purelib"],
        paths["stdlib"] if place.name != "docker" else paths["purelib"],  # it has its own
        str(source),
        str(source.parent),
        str(Path(tempfile.gettempdir()) / "sanderling"),
    }
    return sorted(path for path in known if len(path) > len("/usr/bin"))


@settings(
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(FAILING, AROUND)
def test_no_path_of_the_host_is_told(
    walled: Place, python: Driven, hidden: list[str], code: str, around: str
) -> None:
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    result = python.run(around.replace("{indented}", indented).replace("{}", code))
    assert result.error is not None
    told = f"{result.error}\n{result.logs}"
    assert not [path for path in hidden if path in told], told
