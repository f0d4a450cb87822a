"""Attempts on files: of the host, of the next Python, of other programs."""

from sandbox.attacks.case import Case, Layer

_PATHS: tuple[Layer, ...] = ("landlock", "namespaces")

CASES = (
    Case("read a secret", ("files: read",), "print(open(secret_file).read())"),
    Case("read /etc/passwd", ("files: read",), "print(open('/etc/passwd').read()); 'through'"),
    Case(
        "read the user's keys",
        ("files: read",),
        "print(open(home + '/.ssh/id_ed25519').read())",
    ),
    Case(
        "list the host's folders",
        ("files: read",),
        "import os; print(os.listdir(outside)); 'through'",
    ),
    Case(
        "read the host's own source",
        ("files: read",),
        "print(open(library + '/sandbox/_session.py').read()); 'through'",
    ),
    Case(
        "symbolic link out, trailing slash",
        ("90", "files: link"),
        """
import os
os.symlink(os.path.dirname(secret_file), "out")
print(os.listdir("out/"))
print(open("out/secret.txt").read())
""",
    ),
    Case(
        "dots out of the work folder",
        ("90",),
        "print(open('../' * 20 + secret_file).read())",
    ),
    Case(
        "hard link out",
        ("90", "files: link"),
        "import os; os.link(secret_file, 'mine'); print(open('mine').read())",
    ),
    Case(
        "a folder moved up and out of",
        ("90", "91"),
        """
import os
os.makedirs("a/b")
os.chdir("a/b")
os.rename("../../a/b", "../../b")
print(open("../" * 20 + secret_file).read())
""",
    ),
    Case(
        "a link swapped between check and use",
        ("91",),
        """
import os, threading, time
open("fine", "w").close()
stop = threading.Event()
def swap():
    while not stop.is_set():
        for target in ("fine", secret_file):
            os.symlink(target, "new"); os.replace("new", "link")
thread = threading.Thread(target=swap); thread.start()
until = time.monotonic() + 0.3
try:
    while time.monotonic() < until:
        try: print(open("link").read(), end="")
        except FileNotFoundError: pass
        except PermissionError: refused = True
finally:
    stop.set(); thread.join()
"refused"
""",
    ),
    Case(
        "a path that begins like the work folder's",
        ("92",),
        """
import os
work = os.getcwd()
try: os.mkdir(work + "-more")
except OSError as error: print(error)
else: open(outside + "/made", "w").close()
print(open(work + "/..//./" + os.path.relpath(secret_file, os.path.dirname(work))).read())
""",
    ),
    Case(
        "a file made where none was to forbid",
        ("93", "95"),
        "open(home + '/.profile', 'x').write('x')",
    ),
    Case(
        "a git hook and the settings of an agent",
        ("95",),
        """
import os
try: open(project + "/agent.json", "a").write("x")
except OSError as error: print(error)
open(project + "/.git/hooks/pre-commit", "w").write("x")
""",
    ),
    Case(
        "plant a module in site-packages",
        ("94", "97", "files: write"),
        "import sysconfig; open(sysconfig.get_path('purelib') + '/sanderling_x.pth', 'w')",
        apart=False,
    ),
    Case(
        "plant sitecustomize in the standard library",
        ("94", "files: write"),
        "import os; open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'a')",
        apart=False,
    ),
    Case(
        "plant modules for the next interpreter in this work folder",
        ("94", "96"),
        (
            """
import os, sys
code = f"open({outside!r} + '/planted', 'w').write('x')\\n"
version = "python%d.%d" % sys.version_info[:2]
user = f".local/lib/{version}/site-packages"
os.makedirs(user)
names = "kernel lockdown ctypes json ast sitecustomize usercustomize encodings".split()
for name in names:
    open(name + ".py", "w").write(code)
    open(f"{user}/{name}.py", "w").write(code)
open(user + "/x.pth", "w").write("import os; " + code)
open("pyvenv.cfg", "w").write("home = .\\n")
os.environ.update(PYTHONPATH=os.getcwd(), PYTHONSTARTUP="json.py", LD_PRELOAD="./x.so")
os._exit(1)
""",
            """
import os, sys
assert os.path.exists("sitecustomize.py"), "the work folder stays"
assert not {"PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD"} & set(os.environ)
assert os.getcwd() not in sys.path
"reached"
""",
        ),
        "contained",
        ("process",),
    ),
    Case(
        "make a file in /tmp",
        ("files: write",),
        "open('/tmp/sanderling-attack', 'x').close(); 'through'",
        apart=False,
    ),
    Case(
        "make a file of shared memory",
        ("files: write",),
        "open('/dev/shm/sanderling-attack', 'x').close(); 'through'",
        apart=False,
    ),
    Case("write a host file", ("files: write",), "open(secret_file, 'a').write('x')"),
    Case("truncate by path", ("files: destroy",), "import os; os.truncate(secret_file, 0)"),
    Case(
        "truncate while opening to read",
        ("files: destroy",),
        "import os; os.open(secret_file, os.O_RDONLY | os.O_TRUNC)",
    ),
    Case("unlink a host file", ("files: destroy",), "import os; os.unlink(secret_file)"),
    Case(
        "rename a host file",
        ("files: destroy",),
        "import os; os.rename(secret_file, outside + '/gone')",
    ),
    Case(
        "move a file out",
        ("files: write",),
        "import os; open('x', 'w').close(); os.rename('x', outside + '/x')",
    ),
    Case(
        "change mode and times of a host file",
        ("files: attributes",),
        """
import os
for change in (lambda: os.chmod(secret_file, 0), lambda: os.utime(secret_file, (1, 1))):
    try: change()
    except OSError as error: print(error)
"refused"
""",
        layers=("seccomp", "namespaces"),
    ),
    Case(
        "an extended attribute on a host file",
        ("files: attributes",),
        "import os; os.setxattr(secret_file, 'user.x', b'1')",
        layers=("seccomp", "namespaces"),
    ),
    Case(
        "ask for a host file's size",
        ("files: metadata", "111"),
        "import os; os.stat(secret_file).st_size; 'through'",
        layers=("namespaces",),
    ),
    Case(
        "work folder that resists its removal",
        ("73", "90", "110"),
        """
import ctypes, os
os.mkdir("shut", 0)
os.symlink(outside, "out"); os.symlink(secret_file, "file")
open(b"\\xff\\x1b[2J\\n", "w").close()
top = os.getcwd()
for _ in range(2000):
    os.mkdir("d"); os.chdir("d")
os.symlink(outside, "out")
os.chdir(top)
open("white", "w").close()
try: call("renameat2", -100, b"white", -100, b"out2", 4)
except OSError as error: print(error)
"reached"
""",
        "contained",
        ("process",),
    ),
    Case(
        "an archive that unpacks elsewhere",
        ("74",),
        """
import io, os, tarfile
data = io.BytesIO()
with tarfile.open(fileobj=data, mode="w") as tar:
    for kind, name, link in (
        (tarfile.SYMTYPE, "out", outside), (tarfile.REGTYPE, "out/planted", ""),
        (tarfile.REGTYPE, outside + "/planted", ""),
    ):
        member = tarfile.TarInfo(name); member.type, member.linkname = kind, link
        tar.addfile(member)
data.seek(0)
tar = tarfile.open(fileobj=data)
if hasattr(tarfile, "fully_trusted_filter"): tar.extraction_filter = tarfile.fully_trusted_filter
for member in tar:
    try: tar.extract(member, os.getcwd())
    except (OSError, tarfile.TarError) as error: print(error)
"refused"
""",
    ),
    Case(
        "numpy reads a host file",
        ("54",),
        "import numpy; print(bytes(numpy.fromfile(secret_file, 'u1')))",
        needs=("numpy",),
    ),
    Case(
        "numpy maps a host file to write",
        ("54",),
        "import numpy; numpy.memmap(secret_file, 'u1', 'r+')[:] = 0",
        needs=("numpy",),
    ),
    Case(
        "numpy loads a pickle that calls the system",
        ("54", "51"),
        """
import numpy, posix
class Evil:
    def __reduce__(self): return posix.system, (f"echo planted > {outside}/pickle",)
numpy.save("evil.npy", numpy.array([Evil()], dtype=object), allow_pickle=True)
numpy.load("evil.npy", allow_pickle=True)
"reached"
""",
        "contained",
        ("landlock", "namespaces", "seccomp"),
        needs=("numpy",),
    ),
    Case(
        "SQLite attaches a host file",
        ("55",),
        """
import sqlite3
base = sqlite3.connect(":memory:")
try:
    base.execute("attach ? as other", (outside + "/planted.db",))
    base.execute("create table other.t (x)"); base.commit()
except sqlite3.OperationalError as error:
    print(error)
"refused"
""",
    ),
    Case(
        "pandas reads a host file and an address",
        ("55",),
        """
import pandas, socket
socket.setdefaulttimeout(0.5)
try: print(pandas.read_csv(f"http://127.0.0.1:{tcp}/x.csv"))
except OSError as error: print(error)
print(pandas.read_csv(secret_file))
""",
        needs=("pandas",),
    ),
    Case(
        "XML that includes a host file, and entities that explode",
        ("56",),
        """
import xml.etree.ElementTree as tree, xml.parsers.expat as expat
bomb = "<!DOCTYPE b [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY a{n} '{('&a%s;' % (n - 1 if n else '')) * 10}'>" for n in range(9)) + "]><b>&a8;</b>"
try: tree.fromstring(bomb)
except tree.ParseError as error: print(error)
parser = expat.ParserCreate()
def include(context, base, system, public):
    print(open(system).read()); return 1
parser.ExternalEntityRefHandler = include
parser.Parse(f"<!DOCTYPE b [<!ENTITY f SYSTEM '{secret_file}'>]><b>&f;</b>", True)
""",
    ),
)
