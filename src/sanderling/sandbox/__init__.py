"""Runs the model's Python: real CPython, in a process that the operating system has locked.

Tools stay on the host and are called back. Nothing here knows an agent, a model or a tool: it is
given names, signatures and values.
"""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._checkup import Attempt as Attempt
    from ._checkup import Checkup as Checkup
    from ._checkup import Executor as Executor
    from ._checkup import Wall as Wall
    from ._checkup import check_up as check_up
    from ._checkup import try_executors as try_executors
    from ._create import create_interpreter as create_interpreter
    from ._executor import CodeOutput as CodeOutput
    from ._executor import LocalPythonExecutor as LocalPythonExecutor
    from ._executor import PythonExecutor as PythonExecutor
    from ._interpreter import CodeResult as CodeResult
    from ._interpreter import Interpreter as Interpreter
    from ._interpreter import Printed as Printed
    from ._interpreter import ToolRequest as ToolRequest
    from ._interpreter import ToolSpec as ToolSpec
    from .kernel import BASE_BUILTIN_MODULES as BASE_BUILTIN_MODULES
    from .kernel import CodecError as CodecError
    from .kernel import Opaque as Opaque
    from .kernel import Record as Record
    from .lockdown import probe as probe

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "Attempt": "._checkup",
        "BASE_BUILTIN_MODULES": ".kernel",
        "Checkup": "._checkup",
        "CodeOutput": "._executor",
        "CodeResult": "._interpreter",
        "CodecError": ".kernel",
        "Executor": "._checkup",
        "Interpreter": "._interpreter",
        "LocalPythonExecutor": "._executor",
        "Opaque": ".kernel",
        "Printed": "._interpreter",
        "PythonExecutor": "._executor",
        "Record": ".kernel",
        "ToolRequest": "._interpreter",
        "ToolSpec": "._interpreter",
        "Wall": "._checkup",
        "check_up": "._checkup",
        "create_interpreter": "._create",
        "probe": ".lockdown",
        "try_executors": "._checkup",
    },
)
