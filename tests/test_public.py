"""The public list: what it names, that it all exists, and that it costs nothing to have."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sanderling

PACKAGES = [
    "sanderling",
    "sanderling.agents",
    "sanderling.console",
    "sanderling.loop",
    "sanderling.memory",
    "sanderling.messages",
    "sanderling.models",
    "sanderling.runtime",
    "sanderling.sandbox",
    "sanderling.testing",
    "sanderling.tools",
]
SOURCE = Path(sanderling.__file__).parent.parent
LAZY = [
    ".".join(stub.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for stub in sorted(SOURCE.rglob("*.pyi"))
]


def test_the_public_list_is_this_one() -> None:
    assert dir(sanderling) == [
        "ActionOutput",
        "ActionStep",
        "AgentAudio",
        "AgentError",
        "AgentExecutionError",
        "AgentGenerationError",
        "AgentImage",
        "AgentInterruptedError",
        "AgentLimitError",
        "AgentLogger",
        "AgentMaxStepsError",
        "AgentMemory",
        "AgentParsingError",
        "AgentStoppedError",
        "AgentText",
        "AgentToolCallError",
        "AgentToolExecutionError",
        "AgentType",
        "Allow",
        "AmazonBedrockModel",
        "AmazonBedrockServerModel",
        "AnthropicModel",
        "ApiModel",
        "ApprovalRequest",
        "AzureOpenAIModel",
        "AzureOpenAIServerModel",
        "BaseTool",
        "BlaxelExecutor",
        "CallbackRegistry",
        "ChatMessage",
        "ChatMessageStreamDelta",
        "ChatMessageToolCall",
        "ChatMessageToolCallFunction",
        "ChatMessageToolCallStreamDelta",
        "CodeAgent",
        "CodeOutput",
        "CodeOutputDelta",
        "Compaction",
        "Deny",
        "DockerExecutor",
        "E2BExecutor",
        "EMPTY_PROMPT_TEMPLATES",
        "Edit",
        "FallbackModel",
        "FinalAnswerPromptTemplate",
        "FinalAnswerStep",
        "FinalAnswerTool",
        "GeminiModel",
        "HfApiModel",
        "HostObject",
        "ImagePart",
        "InferenceClientModel",
        "InterpreterError",
        "LiteLLMModel",
        "LiteLLMRouterModel",
        "LlamaCppModel",
        "LocalPythonExecutor",
        "LogLevel",
        "MLXModel",
        "ManagedAgent",
        "ManagedAgentPromptTemplate",
        "MemoryStep",
        "MessageRole",
        "MissingExtraError",
        "ModalExecutor",
        "Model",
        "ModelProfile",
        "ModelReply",
        "Monitor",
        "MultiStepAgent",
        "NestedEvent",
        "OpenAIModel",
        "OpenAIServerModel",
        "PlanningPromptTemplate",
        "PlanningStarted",
        "PlanningStep",
        "Price",
        "PromptTemplates",
        "PythonExecutor",
        "PythonInterpreterTool",
        "REMOVE_PARAMETER",
        "Record",
        "RecordingModel",
        "ReplyBrokenOff",
        "RetryPolicy",
        "Run",
        "RunContext",
        "RunLimits",
        "RunResult",
        "RunStarted",
        "SandboxCrashed",
        "SandboxError",
        "SandboxLimitExceeded",
        "SandboxTimeout",
        "SandboxUnavailable",
        "SandboxValue",
        "SandboxViolation",
        "ScriptedModel",
        "Session",
        "StepStarted",
        "SystemPromptStep",
        "TaskStep",
        "TextPart",
        "Timing",
        "TokenUsage",
        "Tool",
        "ToolCall",
        "ToolCallingAgent",
        "ToolCollection",
        "ToolOutput",
        "TransformersModel",
        "VLLMModel",
        "WasmExecutor",
        "agglomerate_stream_deltas",
        "event_from_dict",
        "event_to_dict",
        "tool",
    ]


@pytest.mark.parametrize("package", LAZY)
def test_a_stub_names_what_is_public_once_and_nothing_else(package: str) -> None:
    module = importlib.import_module(package)
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    imports = ast.parse(stub.read_text("utf-8")).body
    assert all(isinstance(node, ast.ImportFrom) for node in imports)
    names = [
        (alias.name, alias.asname)
        for node in imports
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert all(name == other for name, other in names)
    assert sorted(name for name, _ in names if name != "__version__") == module.__all__
    assert dir(module) == module.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_and_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) or callable(value):
            assert value.__doc__, name
    assert set(module.__all__) <= set(dir(module))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = sanderling.NoSuchThing  # type: ignore[attr-defined]  # the mistake


def test_importing_the_package_imports_next_to_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import sanderling; "
        "print(len(set(sys.modules) - before), "
        "*({'rich', 'openai', 'pydantic', 'jinja2', 'numpy', 'asyncio'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(out[0]) < 40
    assert out[1:] == []


def test_the_common_names_load_no_heavy_library() -> None:
    script = (
        "import sys; from sanderling import CodeAgent, ToolCallingAgent, tool, Tool; "
        "heavy = {'rich', 'openai', 'pydantic', 'jinja2', 'numpy'}; "
        "print(len(sys.modules), *(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(out[0]) < 220
    assert out[1:] == []
