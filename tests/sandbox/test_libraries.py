"""What people use works behind the walls of a locked process: as this user, and as nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sanderling
from sanderling.sandbox import LocalPythonExecutor
from support.locked import NOBODY

# Each ends in a value that says True.
WORK = {
    "numpy": """
import numpy as np
a = np.random.default_rng(0).random((300, 300))
np.save("a.npy", a)
bool(np.allclose(np.linalg.inv(a) @ np.load("a.npy"), np.eye(300)))""",
    "numpy: a large file": """
import numpy as np
a = np.arange(3_000_000); a.tofile("large"); np.save("large.npy", a)
bool((np.fromfile("large", a.dtype) == np.load("large.npy", mmap_mode="r")).all())""",
    "pandas: csv": """
import pandas as pd
pd.DataFrame({"a": [1, 2, 3], "b": list("xyx")}).to_csv("t.csv", index=False)
table = pd.read_csv("t.csv")
table.groupby("b").a.sum().to_dict() == {"x": 4, "y": 2}""",
    "pandas: parquet by pyarrow": """
import pandas as pd
table = pd.DataFrame({"a": range(1000), "b": pd.date_range("2026", periods=1000, tz="Asia/Tokyo")})
table.to_parquet("t.parquet", engine="pyarrow")
bool(pd.read_parquet("t.parquet").equals(table))""",
    "pandas: time zones": """
import pandas as pd
moment = pd.Timestamp("2026-07-01 12:00", tz="Europe/Berlin").tz_convert("America/New_York")
str(moment) == "2026-07-01 06:00:00-04:00\"""",
    "pyarrow": """
import pyarrow as pa, pyarrow.compute as pc, pyarrow.feather as feather
table = pa.table({"x": list(range(100_000))})
feather.write_feather(table, "t.feather")
pc.sum(feather.read_table("t.feather")["x"]).as_py() == 4_999_950_000""",
    "matplotlib": """
import matplotlib.pyplot as plt, os
figure, axes = plt.subplots()
axes.plot([1, 3, 2]); axes.set_title("title")
for end in ("png", "svg", "pdf"): figure.savefig(f"plot.{end}")
plt.close(figure)
all(os.path.getsize(f"plot.{end}") > 1000 for end in ("png", "svg", "pdf"))""",
    "sympy": """
import sympy
x = sympy.symbols("x")
sympy.integrate(sympy.sin(x) * sympy.exp(x), (x, 0, sympy.pi)) == (1 + sympy.exp(sympy.pi)) / 2""",
    "PIL": """
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (60, 30), "white")
ImageDraw.Draw(image).text((5, 5), "text", fill="black", font=ImageFont.load_default(12))
image.save("i.jpg"); image.save("i.webp"); image.save("i.png")
Image.open("i.png").size == Image.open("i.jpg").size == (60, 30)""",
    "scipy": """
import numpy as np, scipy.optimize, scipy.stats, scipy.linalg
least = scipy.optimize.minimize(scipy.optimize.rosen, np.zeros(3))
bool(np.allclose(least.x, 1, atol=1e-3) and scipy.stats.norm.cdf(0) == 0.5)""",
    "sklearn": """
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
x = np.random.default_rng(0).random((200, 4)); y = x[:, 0] > 0.5
float(cross_val_score(RandomForestClassifier(20, n_jobs=2), x, y, cv=3).mean()) > 0.9""",
    "sqlite3": """
import sqlite3
with sqlite3.connect("x.db") as db:
    db.execute("pragma journal_mode=wal"); db.execute("create table t (x)")
    db.executemany("insert into t values (?)", [(n,) for n in range(100)])
db.execute("select sum(x) from t").fetchone() == (4950,)""",
    "asyncio": """
import asyncio
async def one(n):
    await asyncio.sleep(0.001)
    return n
await asyncio.gather(*map(one, range(5)), asyncio.to_thread(max, 1, 2)) == [0, 1, 2, 3, 4, 2]""",
    "threads": """
import threading, concurrent.futures
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    squares = list(pool.map(lambda n: n * n, range(99)))
sum(squares) == 98 * 99 * 197 // 6""",
    "zoneinfo": """
import datetime, zoneinfo
at = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))
at.utcoffset().total_seconds() == 7200""",
    "tempfile": """
import tempfile, os
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as file:
    file.write("x"); file.seek(0)
    ok = file.read() == "x" and os.path.dirname(folder) == os.getcwd()
ok""",
    "ctypes": """
import ctypes
order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(a, 3, 4, order(lambda x, y: x[0] - y[0]))
list(a) == [1, 2, 3]""",
    "decimal, fractions, statistics": """
import decimal, fractions, statistics
mean = statistics.mean([fractions.Fraction(1, 2)] * 3)
decimal.Decimal(1) / 8 == decimal.Decimal("0.125") and mean == 0.5""",
    "json, csv, xml, html, email": """
import csv, email.message, html, io, json, xml.etree.ElementTree as tree
csv.writer(open("t.csv", "w")).writerow([1, "a,b"])
letter = email.message.EmailMessage(); letter.set_content("x")
json.loads(json.dumps([1])) == [1] and tree.fromstring("<a>x</a>").text == html.unescape("x")""",
    "archives": """
import gzip, shutil, tarfile, zipfile, bz2, lzma
open("x", "w").write("y")
with tarfile.open("t.tgz", "w:gz") as t: t.add("x")
with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_LZMA) as z: z.write("x")
shutil.unpack_archive("t.tgz", "out"); zipfile.ZipFile("t.zip").extractall("out2")
open("out/x").read() == open("out2/x").read() == "y\"""",
    "hashes and randomness": """
import hashlib, hmac, random, secrets, uuid
len(hashlib.sha256(secrets.token_bytes(9)).digest()) == 32 and uuid.uuid4() != uuid.uuid4()""",
    "dataclasses, enum, typing, abc": """
import dataclasses, enum, functools
@dataclasses.dataclass(order=True)
class P: x: int = 1
class C(enum.Flag): A = 1; B = 2
P() < P(2) and (C.A | C.B).value == 3 and functools.cache(lambda: 5)() == 5""",
    "pydantic": """
import pydantic
class M(pydantic.BaseModel): n: int
M.model_validate_json('{"n": "5"}').n == 5""",
}
_CAN_START = """
import subprocess, sys, sanderling, numpy
subprocess.run([sys.executable, "-c", ""], check=True)
"""
_TOGETHER = """
import json, sys
from sanderling.sandbox import LocalPythonExecutor
said = {}
for name, code in json.load(sys.stdin).items():
    with LocalPythonExecutor(["*"], timeout_seconds=50) as python:
        try: said[name] = repr(python(code).output)
        except Exception as error: said[name] = str(error)
print(json.dumps(said))
"""


def here(name: str) -> str:
    with LocalPythonExecutor(["*"], timeout_seconds=50) as python:
        return repr(python(WORK[name]).output)


@pytest.fixture(scope="module")
def nobody() -> Callable[[str], str]:
    """Says what each piece of work came to for a host that is nobody."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    source = str(Path(sanderling.__file__).parent.parent)
    command = [*become, sys.executable, "-B"]
    environment = {"PYTHONPATH": source}
    tried = subprocess.run(
        [*command, "-c", _CAN_START],
        env=environment,
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        pytest.skip(f"nobody cannot run {sys.executable} with this source")
    said: dict[str, str] = {}

    def ask(name: str) -> str:
        if not said:
            done = subprocess.run(
                [*command, "-c", _TOGETHER],
                input=json.dumps(WORK),
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            said.update(json.loads(done.stdout))
        return said[name]

    return ask


@pytest.mark.parametrize("name", WORK)
def test_it_works_behind_the_walls(name: str) -> None:
    assert here(name) == "True"


@pytest.mark.timeout(180)  # the first case runs them all
@pytest.mark.parametrize("name", WORK)
def test_it_works_for_nobody(nobody: Callable[[str], str], name: str) -> None:
    assert nobody(name) == "True"
