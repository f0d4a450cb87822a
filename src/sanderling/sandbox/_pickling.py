"""Functions and classes as copies for the sandbox, by cloudpickle. Pickles only ever go in.

What a function or a class refers to goes with it: other functions and classes, modules by name, and
plain data. Of any other object, such as a client with its key, only a reference goes.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib.util
import io
import linecache
import marshal
import pickle
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it has no types

_DATA = (
    *(type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set),
    *(frozenset, range, slice, type, CodeType, FunctionType, ModuleType, enum.Enum),
)
# Modules whose types hold values, or belong to classes and functions.
_OF_VALUES = frozenset(
    {
        *(
            "abc",
            "_abc",
            "builtins",
            "_collections",
            "collections",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
        ),
        *("fractions", "functools", "ipaddress", "itertools", "logging", "operator", "pathlib"),
        *("re", "string", "types", "typing", "uuid", "weakref", "_weakrefset", "zoneinfo"),
        *("annotated_types", "numpy", "pandas", "pydantic", "pydantic_core", "typing_extensions"),
    }
)
_NO_FILE = "<host>"
_lock = threading.Lock()  # of cloudpickle's list of modules


def dump(code: object, refer: Callable[[object], dict[str, object]]) -> bytes:
    """Pickles a function or a class.

    Args:
        code: It.
        refer: Makes what goes in the place of an object that stays here.

    Raises:
        Exception: Whatever a part of it raises that cannot be pickled.
    """
    buffer = io.BytesIO()
    with _by_value() as goes_by_value:
        _Pickler(buffer, refer, goes_by_value).dump(code)
    return buffer.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # as above
    def __init__(
        self,
        buffer: io.BytesIO,
        refer: Callable[[object], dict[str, object]],
        goes_by_value: Callable[[str], None],
    ) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self._refer = refer
        self._goes_by_value = goes_by_value
        self._files: set[object] = set()

    def persistent_id(self, obj: object) -> tuple[str, object] | None:
        kind = type(obj)
        if kind in _DATA:
            if isinstance(obj, FunctionType):
                self._files.add(obj.__globals__.get("__file__"))
            if isinstance(obj, str) and obj in self._files:
                return ("data", _NO_FILE)
            return ("code", self._code(obj)) if isinstance(obj, CodeType) else None
        if isinstance(obj, (type, enum.Enum)) or dataclasses.is_dataclass(obj) or _is_model(obj):
            return None
        if kind.__module__.partition(".")[0] in _OF_VALUES and not isinstance(obj, io.IOBase):
            return None
        return ("host", self._refer(obj))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (FunctionType, type)):
            self._goes_by_value(obj.__module__)
        return super().reducer_override(obj)

    def _code(self, code: CodeType) -> dict[str, object]:
        return {
            "magic": importlib.util.MAGIC_NUMBER,
            "compiled": marshal.dumps(_without_paths(code)),
            "name": code.co_qualname,
            "source": _definition(code),
            "free": code.co_freevars,
        }


def _is_model(obj: object) -> bool:
    return hasattr(type(obj), "__pydantic_fields__")


@contextmanager
def _by_value() -> Iterator[Callable[[str], None]]:
    """Lets modules of the host's own project, which no sandbox has, go as copies."""
    added: dict[str, ModuleType] = {}

    def goes_by_value(name: str) -> None:
        module = sys.modules.get(name)
        if module is None or name in added or name in cloudpickle.list_registry_pickle_by_value():
            return
        if not _is_installed(module):
            cloudpickle.register_pickle_by_value(module)
            added[name] = module

    with _lock:
        try:
            yield goes_by_value
        finally:
            for module in added.values():
                cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    if module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return module.__name__ != "__main__"
    file = getattr(module, "__file__", None)
    return file is not None and any(map(Path(file).is_relative_to, _installed()))


@functools.cache
def _installed() -> list[str]:
    return [sysconfig.get_path(name) for name in ("purelib", "platlib")]


def _without_paths(code: CodeType) -> CodeType:
    """Takes the names of the host's files away, which are nobody's business."""
    parts = tuple(
        _without_paths(const) if isinstance(const, CodeType) else const for const in code.co_consts
    )
    return code.replace(co_filename=_NO_FILE, co_consts=parts)


def _definition(code: CodeType) -> str | None:
    """Finds the source of one function, and nothing around it, for another version of Python."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [node for node in ast.walk(tree) if _defines(node, code)]
    if len(found) != 1:
        return None  # of two lambdas in a line, nobody can tell which it is
    node = found[0]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        node.decorator_list = []
    text = ast.unparse(node)
    owner = code.co_qualname.split(".")[-2:-1]
    if owner and owner[0].isidentifier():  # which names beginning with two underscores need
        text = f"class {owner[0]}:\n{textwrap.indent(text, '    ')}"
    free = " = ".join(name for name in code.co_freevars if name != "__class__" or not owner)
    if not free:
        return text
    return f"def enclosing():\n    {free} = None\n{textwrap.indent(text, '    ')}"


def _defines(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != code.co_name:
        return False
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first == code.co_firstlineno
