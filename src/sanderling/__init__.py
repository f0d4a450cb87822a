"""Agents that act by writing Python: quick steps, in a sandbox.

Everything public is named here, and imported when it is first used.
"""

from typing import TYPE_CHECKING

from ._lazy import lazy
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from .agents import EMPTY_PROMPT_TEMPLATES as EMPTY_PROMPT_TEMPLATES
    from .agents import CodeAgent as CodeAgent
    from .agents import FinalAnswerPromptTemplate as FinalAnswerPromptTemplate
    from .agents import ManagedAgent as ManagedAgent
    from .agents import ManagedAgentPromptTemplate as ManagedAgentPromptTemplate
    from .agents import MultiStepAgent as MultiStepAgent
    from .agents import PlanningPromptTemplate as PlanningPromptTemplate
    from .agents import PromptTemplates as PromptTemplates
    from .agents import ToolCallingAgent as ToolCallingAgent
    from .console import AgentLogger as AgentLogger
    from .console import LogLevel as LogLevel
    from .console import Monitor as Monitor
    from .errors import AgentError as AgentError
    from .errors import AgentExecutionError as AgentExecutionError
    from .errors import AgentGenerationError as AgentGenerationError
    from .errors import AgentInterruptedError as AgentInterruptedError
    from .errors import AgentLimitError as AgentLimitError
    from .errors import AgentMaxStepsError as AgentMaxStepsError
    from .errors import AgentParsingError as AgentParsingError
    from .errors import AgentStoppedError as AgentStoppedError
    from .errors import AgentToolCallError as AgentToolCallError
    from .errors import AgentToolExecutionError as AgentToolExecutionError
    from .errors import InterpreterError as InterpreterError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import SandboxCrashed as SandboxCrashed
    from .errors import SandboxError as SandboxError
    from .errors import SandboxLimitExceeded as SandboxLimitExceeded
    from .errors import SandboxTimeout as SandboxTimeout
    from .errors import SandboxUnavailable as SandboxUnavailable
    from .errors import SandboxViolation as SandboxViolation
    from .loop import ActionOutput as ActionOutput
    from .loop import CodeOutputDelta as CodeOutputDelta
    from .loop import ModelReply as ModelReply
    from .loop import NestedEvent as NestedEvent
    from .loop import PlanningStarted as PlanningStarted
    from .loop import RunStarted as RunStarted
    from .loop import StepStarted as StepStarted
    from .loop import ToolOutput as ToolOutput
    from .loop import event_from_dict as event_from_dict
    from .loop import event_to_dict as event_to_dict
    from .memory import ActionStep as ActionStep
    from .memory import AgentMemory as AgentMemory
    from .memory import CallbackRegistry as CallbackRegistry
    from .memory import Compaction as Compaction
    from .memory import FinalAnswerStep as FinalAnswerStep
    from .memory import MemoryStep as MemoryStep
    from .memory import PlanningStep as PlanningStep
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
    from .models import AmazonBedrockModel as AmazonBedrockModel
    from .models import AmazonBedrockServerModel as AmazonBedrockServerModel
    from .models import AnthropicModel as AnthropicModel
    from .models import ApiModel as ApiModel
    from .models import AzureOpenAIModel as AzureOpenAIModel
    from .models import AzureOpenAIServerModel as AzureOpenAIServerModel
    from .models import FallbackModel as FallbackModel
    from .models import GeminiModel as GeminiModel
    from .models import HfApiModel as HfApiModel
    from .models import InferenceClientModel as InferenceClientModel
    from .models import LiteLLMModel as LiteLLMModel
    from .models import LiteLLMRouterModel as LiteLLMRouterModel
    from .models import LlamaCppModel as LlamaCppModel
    from .models import MLXModel as MLXModel
    from .models import Model as Model
    from .models import ModelProfile as ModelProfile
    from .models import OpenAIModel as OpenAIModel
    from .models import OpenAIServerModel as OpenAIServerModel
    from .models import RecordingModel as RecordingModel
    from .models import RetryPolicy as RetryPolicy
    from .models import ScriptedModel as ScriptedModel
    from .models import TransformersModel as TransformersModel
    from .models import VLLMModel as VLLMModel
    from .runtime import Allow as Allow
    from .runtime import ApprovalRequest as ApprovalRequest
    from .runtime import Deny as Deny
    from .runtime import Edit as Edit
    from .runtime import Price as Price
    from .runtime import Run as Run
    from .runtime import RunContext as RunContext
    from .runtime import RunLimits as RunLimits
    from .runtime import RunResult as RunResult
    from .runtime import Session as Session
    from .sandbox import BlaxelExecutor as BlaxelExecutor
    from .sandbox import CodeOutput as CodeOutput
    from .sandbox import DockerExecutor as DockerExecutor
    from .sandbox import E2BExecutor as E2BExecutor
    from .sandbox import HostObject as HostObject
    from .sandbox import LocalPythonExecutor as LocalPythonExecutor
    from .sandbox import ModalExecutor as ModalExecutor
    from .sandbox import PythonExecutor as PythonExecutor
    from .sandbox import Record as Record
    from .sandbox import SandboxValue as SandboxValue
    from .sandbox import WasmExecutor as WasmExecutor
    from .tools import BaseTool as BaseTool
    from .tools import FinalAnswerTool as FinalAnswerTool
    from .tools import PythonInterpreterTool as PythonInterpreterTool
    from .tools import Tool as Tool
    from .tools import ToolCollection as ToolCollection
    from .tools import tool as tool
    from .tools.agent_types import AgentAudio as AgentAudio
    from .tools.agent_types import AgentImage as AgentImage
    from .tools.agent_types import AgentText as AgentText
    from .tools.agent_types import AgentType as AgentType

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "ActionOutput": ".loop",
        "ActionStep": ".memory",
        "AgentAudio": ".tools.agent_types",
        "AgentError": ".errors",
        "AgentExecutionError": ".errors",
        "AgentGenerationError": ".errors",
        "AgentImage": ".tools.agent_types",
        "AgentInterruptedError": ".errors",
        "AgentLimitError": ".errors",
        "AgentLogger": ".console",
        "AgentMaxStepsError": ".errors",
        "AgentMemory": ".memory",
        "AgentParsingError": ".errors",
        "AgentStoppedError": ".errors",
        "AgentText": ".tools.agent_types",
        "AgentToolCallError": ".errors",
        "AgentToolExecutionError": ".errors",
        "AgentType": ".tools.agent_types",
        "Allow": ".runtime",
        "AmazonBedrockModel": ".models",
        "AmazonBedrockServerModel": ".models",
        "AnthropicModel": ".models",
        "ApiModel": ".models",
        "ApprovalRequest": ".runtime",
        "AzureOpenAIModel": ".models",
        "AzureOpenAIServerModel": ".models",
        "BaseTool": ".tools",
        "BlaxelExecutor": ".sandbox",
        "CallbackRegistry": ".memory",
        "ChatMessage": ".messages",
        "ChatMessageStreamDelta": ".messages",
        "ChatMessageToolCall": ".messages",
        "ChatMessageToolCallFunction": ".messages",
        "ChatMessageToolCallStreamDelta": ".messages",
        "CodeAgent": ".agents",
        "CodeOutput": ".sandbox",
        "CodeOutputDelta": ".loop",
        "Compaction": ".memory",
        "Deny": ".runtime",
        "DockerExecutor": ".sandbox",
        "E2BExecutor": ".sandbox",
        "EMPTY_PROMPT_TEMPLATES": ".agents",
        "Edit": ".runtime",
        "FallbackModel": ".models",
        "FinalAnswerPromptTemplate": ".agents",
        "FinalAnswerStep": ".memory",
        "FinalAnswerTool": ".tools",
        "GeminiModel": ".models",
        "HfApiModel": ".models",
        "HostObject": ".sandbox",
        "ImagePart": ".messages",
        "InferenceClientModel": ".models",
        "InterpreterError": ".errors",
        "LiteLLMModel": ".models",
        "LiteLLMRouterModel": ".models",
        "LlamaCppModel": ".models",
        "LocalPythonExecutor": ".sandbox",
        "LogLevel": ".console",
        "ManagedAgent": ".agents",
        "ManagedAgentPromptTemplate": ".agents",
        "MLXModel": ".models",
        "MemoryStep": ".memory",
        "MessageRole": ".messages",
        "MissingExtraError": ".errors",
        "ModalExecutor": ".sandbox",
        "Model": ".models",
        "ModelProfile": ".models",
        "ModelReply": ".loop",
        "Monitor": ".console",
        "MultiStepAgent": ".agents",
        "NestedEvent": ".loop",
        "OpenAIModel": ".models",
        "OpenAIServerModel": ".models",
        "PlanningPromptTemplate": ".agents",
        "PlanningStarted": ".loop",
        "PlanningStep": ".memory",
        "Price": ".runtime",
        "PromptTemplates": ".agents",
        "PythonExecutor": ".sandbox",
        "PythonInterpreterTool": ".tools",
        "REMOVE_PARAMETER": ".models",
        "Record": ".sandbox",
        "RecordingModel": ".models",
        "RetryPolicy": ".models",
        "RunLimits": ".runtime",
        "Run": ".runtime",
        "RunContext": ".runtime",
        "RunResult": ".runtime",
        "RunStarted": ".loop",
        "SandboxCrashed": ".errors",
        "SandboxError": ".errors",
        "SandboxLimitExceeded": ".errors",
        "SandboxTimeout": ".errors",
        "SandboxUnavailable": ".errors",
        "SandboxValue": ".sandbox",
        "SandboxViolation": ".errors",
        "ScriptedModel": ".models",
        "Session": ".runtime",
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
        "TransformersModel": ".models",
        "VLLMModel": ".models",
        "WasmExecutor": ".sandbox",
        "agglomerate_stream_deltas": ".messages",
        "event_from_dict": ".loop",
        "event_to_dict": ".loop",
        "tool": ".tools",
    },
)
