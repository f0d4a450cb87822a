"""Agents that act by writing Python: quick steps, in a sandbox.

Everything public is named here, and imported when it is first used.
"""

from typing import TYPE_CHECKING

from ._lazy import lazy
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from .agents import CodeAgent as CodeAgent
    from .agents import FinalAnswerPromptTemplate as FinalAnswerPromptTemplate
    from .agents import MultiStepAgent as MultiStepAgent
    from .agents import PromptTemplates as PromptTemplates
    from .agents import ToolCallingAgent as ToolCallingAgent
    from .console import AgentLogger as AgentLogger
    from .console import LogLevel as LogLevel
    from .console import Monitor as Monitor
    from .errors import AgentError as AgentError
    from .errors import AgentExecutionError as AgentExecutionError
    from .errors import AgentGenerationError as AgentGenerationError
    from .errors import AgentMaxStepsError as AgentMaxStepsError
    from .errors import AgentParsingError as AgentParsingError
    from .errors import AgentToolCallError as AgentToolCallError
    from .errors import AgentToolExecutionError as AgentToolExecutionError
    from .errors import InterpreterError as InterpreterError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import SandboxCrashed as SandboxCrashed
    from .errors import SandboxError as SandboxError
    from .errors import SandboxTimeout as SandboxTimeout
    from .errors import SandboxUnavailable as SandboxUnavailable
    from .errors import SandboxViolation as SandboxViolation
    from .loop import ActionOutput as ActionOutput
    from .loop import CodeOutputDelta as CodeOutputDelta
    from .loop import RunResult as RunResult
    from .loop import RunStarted as RunStarted
    from .loop import StepStarted as StepStarted
    from .loop import ToolOutput as ToolOutput
    from .memory import ActionStep as ActionStep
    from .memory import AgentMemory as AgentMemory
    from .memory import FinalAnswerStep as FinalAnswerStep
    from .memory import MemoryStep as MemoryStep
    from .memory import SystemPromptStep as SystemPromptStep
    from .memory import TaskStep as TaskStep
    from .memory import ToolCall as ToolCall
    from .messages import ChatMessage as ChatMessage
    from .messages import ChatMessageStreamDelta as ChatMessageStreamDelta
    from .messages import ChatMessageToolCall as ChatMessageToolCall
    from .messages import ChatMessageToolCallFunction as ChatMessageToolCallFunction
    from .messages import ChatMessageToolCallStreamDelta as ChatMessageToolCallStreamDelta
    from .messages import ImagePart as ImagePart
    from .messages import MessageRole as MessageRole
    from .messages import TextPart as TextPart
    from .messages import Timing as Timing
    from .messages import TokenUsage as TokenUsage
    from .messages import agglomerate_stream_deltas as agglomerate_stream_deltas
    from .models import REMOVE_PARAMETER as REMOVE_PARAMETER
    from .models import LlamaCppModel as LlamaCppModel
    from .models import Model as Model
    from .models import ModelProfile as ModelProfile
    from .models import OpenAIModel as OpenAIModel
    from .models import OpenAIServerModel as OpenAIServerModel
    from .models import RecordingModel as RecordingModel
    from .models import ScriptedModel as ScriptedModel
    from .runtime import CallbackRegistry as CallbackRegistry
    from .sandbox import CodeOutput as CodeOutput
    from .sandbox import LocalPythonExecutor as LocalPythonExecutor
    from .sandbox import PythonExecutor as PythonExecutor
    from .tools import BaseTool as BaseTool
    from .tools import FinalAnswerTool as FinalAnswerTool
    from .tools import Tool as Tool
    from .tools import ToolCollection as ToolCollection
    from .tools import tool as tool

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "ActionOutput": ".loop",
        "ActionStep": ".memory",
        "AgentError": ".errors",
        "AgentExecutionError": ".errors",
        "AgentGenerationError": ".errors",
        "AgentLogger": ".console",
        "AgentMaxStepsError": ".errors",
        "AgentMemory": ".memory",
        "AgentParsingError": ".errors",
        "AgentToolCallError": ".errors",
        "AgentToolExecutionError": ".errors",
        "BaseTool": ".tools",
        "CallbackRegistry": ".runtime",
        "ChatMessage": ".messages",
        "ChatMessageStreamDelta": ".messages",
        "ChatMessageToolCall": ".messages",
        "ChatMessageToolCallFunction": ".messages",
        "ChatMessageToolCallStreamDelta": ".messages",
        "CodeAgent": ".agents",
        "CodeOutput": ".sandbox",
        "CodeOutputDelta": ".loop",
        "FinalAnswerPromptTemplate": ".agents",
        "FinalAnswerStep": ".memory",
        "FinalAnswerTool": ".tools",
        "ImagePart": ".messages",
        "InterpreterError": ".errors",
        "LlamaCppModel": ".models",
        "LocalPythonExecutor": ".sandbox",
        "LogLevel": ".console",
        "MemoryStep": ".memory",
        "MessageRole": ".messages",
        "MissingExtraError": ".errors",
        "Model": ".models",
        "ModelProfile": ".models",
        "Monitor": ".console",
        "MultiStepAgent": ".agents",
        "OpenAIModel": ".models",
        "OpenAIServerModel": ".models",
        "PromptTemplates": ".agents",
        "PythonExecutor": ".sandbox",
        "REMOVE_PARAMETER": ".models",
        "RecordingModel": ".models",
        "RunResult": ".loop",
        "RunStarted": ".loop",
        "SandboxCrashed": ".errors",
        "SandboxError": ".errors",
        "SandboxTimeout": ".errors",
        "SandboxUnavailable": ".errors",
        "SandboxViolation": ".errors",
        "ScriptedModel": ".models",
        "StepStarted": ".loop",
        "SystemPromptStep": ".memory",
        "TaskStep": ".memory",
        "TextPart": ".messages",
        "Timing": ".messages",
        "TokenUsage": ".messages",
        "Tool": ".tools",
        "ToolCall": ".memory",
        "ToolCallingAgent": ".agents",
        "ToolCollection": ".tools",
        "ToolOutput": ".loop",
        "agglomerate_stream_deltas": ".messages",
        "tool": ".tools",
    },
)
