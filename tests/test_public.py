"""The public list: what it names, that it all exists, and that it costs nothing to have."""

from __future__ import annotations

import importlib
import subprocess
import sys

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
    "sanderling.tools",
]


def test_the_public_list_is_this_one() -> None:
    assert sanderling.__all__ == [
        "ActionOutput",
        "ActionStep",
        "AgentError",
        "AgentExecutionError",
        "AgentGenerationError",
        "AgentLogger",
        "AgentMaxStepsError",
        "AgentMemory",
        "AgentParsingError",
        "AgentToolCallError",
        "AgentToolExecutionError",
        "BaseTool",
        "CallbackRegistry",
        "ChatMessage",
        "ChatMessageStreamDelta",
        "ChatMessageToolCall",
        "ChatMessageToolCallFunction",
        "ChatMessageToolCallStreamDelta",
        "CodeAgent",
        "CodeOutput",
        "CodeOutputDelta",
        "FinalAnswerPromptTemplate",
        "FinalAnswerStep",
        "FinalAnswerTool",
        "ImagePart",
        "InterpreterError",
        "LlamaCppModel",
        "LocalPythonExecutor",
        "LogLevel",
        "MemoryStep",
        "MessageRole",
        "MissingExtraError",
        "Model",
        "ModelProfile",
        "Monitor",
        "MultiStepAgent",
        "OpenAIModel",
        "OpenAIServerModel",
        "PromptTemplates",
        "PythonExecutor",
        "REMOVE_PARAMETER",
        "RecordingModel",
        "RunResult",
        "RunStarted",
        "SandboxCrashed",
        "SandboxError",
        "SandboxTimeout",
        "SandboxUnavailable",
        "SandboxViolation",
        "ScriptedModel",
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
        "agglomerate_stream_deltas",
        "tool",
    ]


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
        _ = sanderling.NoSuchThing


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
    assert int(out[0]) < 200
    assert out[1:] == []
