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
    from ._executor import InterpreterExecutor as InterpreterExecutor
    from ._executor import PythonExecutor as PythonExecutor
    from ._executors import BlaxelExecutor as BlaxelExecutor
    from ._executors import DockerExecutor as DockerExecutor
    from ._executors import E2BExecutor as E2BExecutor
    from ._executors import LocalPythonExecutor as LocalPythonExecutor
    from ._executors import ModalExecutor as ModalExecutor
    from ._executors import RemotePythonExecutor as RemotePythonExecutor
    from ._executors import WasmExecutor as WasmExecutor
    from ._executors import create_executor as create_executor
    from ._host_values import HostObject as HostObject
    from ._incoming import Incoming as Incoming
    from ._incoming import incoming_files as incoming_files
    from ._interpreter import CallElsewhere as CallElsewhere
    from ._interpreter import CodeResult as CodeResult
    from ._interpreter import InlineInterpreter as InlineInterpreter
    from ._interpreter import Interpreter as Interpreter
    from ._interpreter import Printed as Printed
    from ._interpreter import ToolRequest as ToolRequest
    from ._interpreter import ToolSpec as ToolSpec
    from ._interpreter import literal_text as literal_text
    from ._old_names import LocalPythonInterpreter as LocalPythonInterpreter
    from ._old_names import fix_final_answer_code as fix_final_answer_code
    from ._plugged import interpreter_of as interpreter_of
    from ._snapshots import Snapshot as Snapshot
    from ._texts import described as described
    from ._texts import encode_on_host as encode_on_host
    from ._texts import error_text as error_text
    from ._texts import failure as failure
    from ._texts import safe_repr as safe_repr
    from ._texts import safe_str as safe_str
    from ._texts import stays_on_host as stays_on_host
    from ._texts import without_objects as without_objects
    from ._told import told as told
    from ._work_files import WorkFile as WorkFile
    from ._work_files import WorkFiles as WorkFiles
    from ._work_files import keep_files as keep_files
    from .kernel import BASE_BUILTIN_MODULES as BASE_BUILTIN_MODULES
    from .kernel import CodecError as CodecError
    from .kernel import Record as Record
    from .kernel import SandboxValue as SandboxValue
    from .lockdown import probe as probe

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "Attempt": "._checkup",
        "BASE_BUILTIN_MODULES": ".kernel",
        "Checkup": "._checkup",
        "BlaxelExecutor": "._executors",
        "CallElsewhere": "._interpreter",
        "InlineInterpreter": "._interpreter",
        "CodeOutput": "._executor",
        "CodeResult": "._interpreter",
        "CodecError": ".kernel",
        "DockerExecutor": "._executors",
        "E2BExecutor": "._executors",
        "Executor": "._checkup",
        "HostObject": "._host_values",
        "Incoming": "._incoming",
        "incoming_files": "._incoming",
        "keep_files": "._work_files",
        "WorkFile": "._work_files",
        "WorkFiles": "._work_files",
        "Interpreter": "._interpreter",
        "InterpreterExecutor": "._executor",
        "LocalPythonExecutor": "._executors",
        "LocalPythonInterpreter": "._old_names",
        "ModalExecutor": "._executors",
        "Printed": "._interpreter",
        "PythonExecutor": "._executor",
        "Record": ".kernel",
        "RemotePythonExecutor": "._executors",
        "SandboxValue": ".kernel",
        "Snapshot": "._snapshots",
        "ToolRequest": "._interpreter",
        "ToolSpec": "._interpreter",
        "Wall": "._checkup",
        "WasmExecutor": "._executors",
        "check_up": "._checkup",
        "create_executor": "._executors",
        "create_interpreter": "._create",
        "described": "._texts",
        "encode_on_host": "._texts",
        "error_text": "._texts",
        "failure": "._texts",
        "fix_final_answer_code": "._old_names",
        "interpreter_of": "._plugged",
        "literal_text": "._interpreter",
        "probe": ".lockdown",
        "safe_repr": "._texts",
        "safe_str": "._texts",
        "stays_on_host": "._texts",
        "without_objects": "._texts",
        "told": "._told",
        "try_executors": "._checkup",
    },
)
