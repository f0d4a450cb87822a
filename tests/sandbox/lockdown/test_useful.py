"""What honest code needs still works behind the walls."""

import pytest

from support.locked import Station

USEFUL = {
    "work folder": (
        "(['e', 'e/b', 'e/d.txt', 'l'], True)",
        """
import os, pathlib, shutil
pathlib.Path("a/b").mkdir(parents=True)
pathlib.Path("a/b/c.txt").write_text("x")
os.rename("a/b/c.txt", "a/d.txt")
shutil.copytree("a", "e"); shutil.rmtree("a"); os.symlink("e", "l")
said = sorted(str(p) for p in pathlib.Path().rglob("*")), os.getcwd() == workdir
""",
    ),
    "tempfile": (
        "x",
        """
import tempfile
tempfile.tempdir = workdir
with tempfile.NamedTemporaryFile("w+") as f, tempfile.TemporaryFile() as g:
    f.write("x"); g.write(b"y"); f.seek(0); said = f.read()
""",
    ),
    "sqlite3": (
        "(3,)",
        """
import sqlite3
with sqlite3.connect("x.db") as db:
    db.execute("pragma journal_mode=wal"); db.execute("create table t(x)")
    db.execute("insert into t values (3)"); said = db.execute("select x from t").fetchone()
db.close()
""",
    ),
    "sqlite3 with several connections, by log or by journal": (
        "[('wal', 'locked', 0, 2), ('delete', 'locked', 0, 2)]",
        """
import sqlite3
said = []
for mode in ("wal", "delete"):
    one, two, three = (
        sqlite3.connect(f"{mode}.db", timeout=0, isolation_level=None) for _ in range(3)
    )
    (found,) = one.execute(f"pragma journal_mode={mode}").fetchone()
    one.execute("create table t(x)")
    one.execute("begin immediate"); one.execute("insert into t values (1)")
    try: two.execute("begin immediate"); second = "free"
    except sqlite3.OperationalError as error: second = str(error).split()[-1]
    (before,) = three.execute("select count(*) from t").fetchone()
    one.execute("commit"); two.execute("insert into t values (2)")
    (after,) = three.execute("select count(*) from t").fetchone()
    said.append((found, second, before, after))
    for each in (one, two, three): each.close()
""",
    ),
    "space in a file": (
        "(1048576, None, b'')",
        """
import os
with open("x", "wb") as f: os.posix_fallocate(f.fileno(), 0, 1 << 20)
fd = os.open("x", os.O_RDONLY)
advised = os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
said = os.path.getsize("x"), advised, os.pread(fd, 9, 1 << 20)
""",
    ),
    "sockets": (
        "(b'x', b'x', 0, 1, True)",
        """
import socket
a, b = socket.socketpair()
a.send(b"x", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
said = (b.recv(1, socket.MSG_PEEK), b.recv(1, socket.MSG_DONTWAIT | socket.MSG_WAITALL),
        a.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), a.type.value,
        a.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 0)
""",
    ),
    "advice about memory": (
        "[None, None, None, None, None]",
        """
import mmap
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
said = [page.madvise(way) for way in (mmap.MADV_NORMAL, mmap.MADV_RANDOM, mmap.MADV_WILLNEED,
                                      mmap.MADV_DONTNEED, mmap.MADV_FREE)]
""",
    ),
    "reading and writing in several parts": (
        "(2, 2, [b'ab'])",
        """
import os
fd = os.open("x", os.O_CREAT | os.O_RDWR); got = bytearray(2)
said = os.pwritev(fd, [b"a", b"b"], 0), os.preadv(fd, [got], 0), [bytes(got)]
""",
    ),
    "zoneinfo": (
        "7200.0",
        """
import datetime, zoneinfo
summer = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
said = summer.utcoffset().total_seconds()
""",
    ),
    "asyncio": (
        "[0, 1, 2, 2]",
        """
import asyncio
async def one(n): await asyncio.sleep(0.001); return n
async def main(): return await asyncio.gather(*map(one, range(3)), asyncio.to_thread(max, 1, 2))
said = asyncio.run(main())
""",
    ),
    "threads": (
        "[3, 2, 1]",
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool: said = list(pool.map(abs, range(-3, 0)))
""",
    ),
    "copy2, which copies times and attributes": (
        "y",
        """
import shutil; open("x", "w").write("y"); shutil.copy2("x", "z"); said = open("z").read()
""",
    ),
    "tarfile": (
        "y",
        """
import tarfile; open("x", "w").write("y")
with tarfile.open("t.tgz", "w:gz") as t: t.add("x")
with tarfile.open("t.tgz") as t: t.extractall("out")
said = open("out/x").read()
""",
    ),
    "zipfile": (
        "y",
        """
import zipfile
with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as z: z.writestr("x", "y")
with zipfile.ZipFile("t.zip") as z: z.extractall("out")
said = open("out/x").read()
""",
    ),
    "ctypes, with a call back": (
        "[1, 2, 3]",
        """
import ctypes
order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(a, 3, 4, order(lambda x, y: x[0] - y[0])); said = list(a)
""",
    ),
    "signals to itself": (
        "[1, 1, 1, <Signals.SIGALRM: 14>]",
        """
import os, signal, threading
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
os.kill(os.getpid(), signal.SIGUSR1); signal.raise_signal(signal.SIGUSR1)
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
signal.setitimer(signal.ITIMER_REAL, 0.001); got.append(signal.sigwait({signal.SIGALRM}))
said = sorted(got)
""",
    ),
    "what the machine is": (
        "(True, True, 'Linux', True, True)",
        """
import multiprocessing, os, platform
said = (os.cpu_count() >= 1, len(os.sched_getaffinity(0)) >= 1, platform.system(),
        bool(platform.platform()), platform.processor() is not None)
""",
    ),
    "its share of the processors, where control groups have version 1": (
        "True",
        """
import os
path = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"
said = not os.path.exists(path) or int(open(path).read()) != 0
""",
    ),
    "types of files": (
        "image/png",
        """
import mimetypes; said = mimetypes.guess_type('x.png')[0]
""",
    ),
    "names of threads": (
        "x",
        """
import threading
t = threading.Thread(target=print, name="x"); t.start(); t.join(); said = t.name
""",
    ),
    "randomness": (
        "(3, True)",
        """
import random, secrets, uuid; said = len(secrets.token_bytes(3)), bool(uuid.uuid4())
""",
    ),
    "mapped files": (
        "b'Abc'",
        """
import mmap; open("x", "wb").write(b"abc")
with open("x", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[0] = 65; m.flush(); said = m[:]
""",
    ),
    "pipes and selectors": (
        "(1, 2)",
        """
import os, selectors, socket
r, w = os.pipe(); s = selectors.DefaultSelector(); s.register(r, selectors.EVENT_READ)
os.write(w, b"x"); said = len(s.select(1)), len(socket.socketpair())
""",
    ),
    "devices": (
        "1",
        """
open("/dev/null", "w").write("x"); said = len(open("/dev/urandom", "rb").read(1))
""",
    ),
    "imports after the lock": (
        "2d71",
        """
import ssl, subprocess, multiprocessing, email, http.client, xml.etree.ElementTree as et
import bz2, lzma, hashlib, decimal, unicodedata
said = hashlib.sha256(et.fromstring("<a>x</a>").text.encode()).hexdigest()[:4]
""",
    ),
    "locks on files": (
        "1",
        """
import fcntl
with open("x", "w") as f: fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); said = 1
""",
    ),
    "process pool says that it cannot": (
        "refused",
        """
from concurrent.futures import ProcessPoolExecutor
try: ProcessPoolExecutor(1).submit(abs, 1).result(); said = "ran"
except OSError: said = "refused"
""",
    ),
    "numpy with threads of its own": (
        "True",
        """
try: import numpy as np
except ImportError: said = "no numpy"

else:
    a = np.random.default_rng(0).random((400, 400)); np.save("a.npy", a)
    said = bool(np.allclose(np.linalg.inv(a) @ np.load("a.npy"), np.eye(400)))
""",
    ),
    "pillow": (
        "(3, 2)",
        """
try: from PIL import Image
except ImportError: said = "no pillow"
else: Image.new("RGB", (3, 2)).save("x.png"); said = Image.open("x.png").size
""",
    ),
}
"""By name: what the code must say, and the code."""


@pytest.mark.parametrize("name", USEFUL)
def test_it_works_behind_the_walls(locked: Station, namespaces: bool, name: str) -> None:
    expected, code = USEFUL[name]
    ended = locked.run(code, namespaces=namespaces)

    if ended.said.startswith("no "):
        pytest.skip(f"{locked.python} has {ended.said}")
    assert (ended.status, ended.said) == (0, expected)
