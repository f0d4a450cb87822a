"""Techniques 34 to 49: code and modules that run other code, and objects shared by all of them."""

from sandbox.attacks.case import Case
from sandbox.attacks.language import reaches

CASES = (
    reaches(
        "34",
        "defaults, annotations and decorators",
        """
import os
said = []
def tool(x: said.append(use(os)) = said.append(use(os))) -> said.append(use(os)):
    "Args:\\n    x: {use(os)}"
final_answer.__wrapped__.__defaults__ = (use,)
said
"reached"
""",
    ),
    reaches(
        "35",
        "modules reached through allowed modules",
        """
import collections, queue, random, statistics
found = [random._os, collections._sys.modules["os"], queue.threading._os]
assert statistics.sys.modules["os"] in found
use(found[2])
""",
    ),
    reaches(
        "36",
        "sys.modules, import_module, reload",
        """
import importlib, sys
importlib.reload(sys.modules["stat"])
use(importlib.import_module("os"))
""",
    ),
    Case(
        "resolve_name, and get_data with dots",
        ("37",),
        """
import pkgutil
pkgutil.resolve_name("os:environ")
print(pkgutil.get_data("json", "../" * 12 + secret_file))
""",
    ),
    Case(
        "loaders read any file",
        ("38",),
        """
from importlib.machinery import SourceFileLoader
import json
print(json.__loader__.get_data(secret_file))
""",
    ),
    Case(
        "the license printer with another file name",
        ("39",),
        """
p = __import__("_sitebuiltins")._Printer("x", "")
p._Printer__lines = None
p._Printer__filenames = [secret_file]
p._Printer__setup()
print(p._Printer__lines)
with open(secret_file) as file: print(file.read())
""",
    ),
    reaches(
        "40",
        "pdb, code and codeop as exec",
        """
import code, codeop, io, os, pdb
interpreter = code.InteractiveInterpreter(globals())
interpreter.runsource("said = use(os)")
exec(codeop.compile_command("said = use(os)"))
pdb.Pdb(stdin=io.StringIO("continue\\n"), stdout=io.StringIO()).run("use(os)")
said
""",
    ),
    reaches(
        "41",
        "timeit, doctest, cProfile, trace and runpy as exec",
        """
import contextlib, cProfile, doctest, io, os, runpy, timeit, trace
quiet = contextlib.redirect_stdout(io.StringIO())
timeit.timeit("use(os)", globals=globals(), number=1)
doctest.run_docstring_examples(">>> said = use(os)", globals())
with quiet: cProfile.runctx("use(os)", globals(), {})
trace.Trace(trace=False, count=False).runctx("use(os)", globals(), {})
open("run.py", "w").write("import os; found = os")
use(runpy.run_path("run.py")["found"])
""",
    ),
    reaches(
        "42",
        "gc finds a module that was taken away",
        """
import gc, sys, types
gc.unfreeze()  # what was there before the fork
[found] = [m for m in gc.get_objects() if type(m) is types.ModuleType and m.__name__ == "os"]
gc.get_referrers(found)
use(found)
""",
    ),
    Case(
        "a code object that reads past its frame",
        ("43",),
        """
import opcode, os
print(use(os))
def run(): return 0
code = opcode.opmap
wild = bytes([code["RESUME"], 0, code["LOAD_FAST"], 250, code["RETURN_VALUE"], 0])
run.__code__ = run.__code__.replace(co_code=wild)
try:
    run()
finally:
    os.abort()
""",
        "ended",
        ("restart",),
        apart=False,
    ),
    reaches(
        "44",
        "the interpreter's own memory",
        """
import ctypes, os
target = (0, 1, 2)
slot = id(target) + tuple.__basicsize__
ctypes.c_void_p.from_address(slot).value = id(os)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(os))
use(target[0])
""",
    ),
    Case(
        "the kernel's output cap disarmed",
        ("45", "75"),
        """
import builtins, sys
sys.addaudithook(lambda *_: None)
k = kernel()
builtins.__import__ = k.MAX_JSON = k.MAX_DEPTH = k.MAX_ITEMS = 1 << 60
k.Output.write = lambda self, text: self._send(text)
for _ in range(1000): print("x" * 1000)
""",
        "violation",
        ("wire",),
        apart=False,
    ),
    Case(
        "json and builtins poisoned for the next one",
        ("46",),
        """
import builtins, json, os
json.dumps = json.loads = builtins.sorted = kernel().show = lambda *_: use(os)
print("reached")
raise SystemExit
""",
        "contained",
        ("together",),
        fresh="import json; 'clean' if json.dumps([len('ab')]) == '[2]' else 'poisoned'",
    ),
    Case(
        "a result that would pollute a merge",
        ("47",),
        """
evil = {"__class__": {"__init__": {"__globals__": {"HOST_API_KEY": "x"}}}, "__dict__": {"a": 1}}
note(evil)
print("reached")
evil
""",
        "contained",
        ("wire",),
        apart=False,
        notes=1,
    ),
    reaches(
        "48",
        "source in UTF-7 and with escapes",
        """
exec("# coding: utf-7\\nimport os+AAo-said = use(os)".encode())
exec("# coding: raw_unicode_escape\\n\\\\u0069mport os\\\\u000asaid = use(os)".encode())
said
""",
    ),
    reaches(
        "49",
        "identifiers that normalise to others",
        """
import os
\uff45\uff56\uff41\uff4c("\uff55\uff53\uff45(os)")
""",
    ),
)
