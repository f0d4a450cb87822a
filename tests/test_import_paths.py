"""The modules that programs written for smolagents import from, and the names they read."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import sanderling
from sanderling import (
    AgentLogger,
    AgentParsingError,
    LogLevel,
    Monitor,
    ScriptedModel,
    ToolCallingAgent,
    tool,
)
from sanderling.agents import AgentStepLog
from sanderling.local_python_executor import LocalPythonInterpreter, fix_final_answer_code
from sanderling.memory import MemoryStep
from sanderling.prompts import CODE_SYSTEM_PROMPT
from sanderling.utils import (
    make_json_serializable,
    parse_code_blobs,
    parse_json_tool_call,
    truncate_content,
)

PATHS = {
    "agents": """
        ManagedAgent MultiStepAgent CodeAgent ToolCallingAgent ActionStep AgentStepLog PlanningStep
        TaskStep SystemPromptStep ToolCall ActionOutput ToolOutput RunResult PromptTemplates
        PlanningPromptTemplate ManagedAgentPromptTemplate FinalAnswerPromptTemplate
        EMPTY_PROMPT_TEMPLATES get_tool_descriptions format_prompt_with_tools
        show_agents_descriptions format_prompt_with_managed_agents_descriptions
        get_tool_description_with_args DEFAULT_TOOL_DESCRIPTION_TEMPLATE AGENT_REGISTRY
        FinalAnswerStep StreamEvent YELLOW_HEX
    """,
    "default_tools": "TOOL_MAPPING FinalAnswerTool PythonInterpreterTool",
    "e2b_executor": "E2BExecutor",
    "local_python_executor": """
        BASE_BUILTIN_MODULES CodeOutput InterpreterError LocalPythonExecutor LocalPythonInterpreter
        PythonExecutor fix_final_answer_code
    """,
    "memory": """
        ActionStep AgentMemory FinalAnswerStep MemoryStep PlanningStep SystemPromptStep TaskStep
        ToolCall
    """,
    "models": """
        AzureOpenAIServerModel ChatMessage ChatMessageStreamDelta ChatMessageToolCall
        ChatMessageToolCallFunction ChatMessageToolCallStreamDelta HfApiModel InferenceClientModel
        LiteLLMModel MessageRole Model OpenAIModel OpenAIServerModel agglomerate_stream_deltas
    """,
    "monitoring": "YELLOW_HEX AgentLogger LogLevel Monitor Timing TokenUsage",
    "prompts": """
        CODE_SYSTEM_PROMPT TOOL_CALLING_SYSTEM_PROMPT MANAGED_AGENT_PROMPT SYSTEM_PROMPT_FACTS
        SYSTEM_PROMPT_FACTS_UPDATE SYSTEM_PROMPT_PLAN SYSTEM_PROMPT_PLAN_UPDATE
        USER_PROMPT_FACTS_UPDATE USER_PROMPT_PLAN USER_PROMPT_PLAN_UPDATE
        PLAN_UPDATE_FINAL_PLAN_REDACTION
    """,
    "remote_executors": """
        BlaxelExecutor DockerExecutor E2BExecutor ModalExecutor RemotePythonExecutor WasmExecutor
    """,
    "tools": "Tool ToolCollection tool validate_tool_arguments get_json_schema",
    "types": "AgentAudio AgentImage AgentText AgentType handle_agent_output_types",
    "agent_types": """
        AgentAudio AgentImage AgentText AgentType handle_agent_input_types handle_agent_output_types
    """,
    "utils": """
        AgentError AgentExecutionError AgentGenerationError AgentMaxStepsError AgentParsingError
        AgentToolCallError AgentToolExecutionError BASE_BUILTIN_MODULES
        MAX_LENGTH_TRUNCATE_CONTENT parse_code_blobs parse_json_tool_call truncate_content
        make_json_serializable
    """,
}
ATTRIBUTES = """
    memory logs step_callbacks state tools managed_agents task input_messages agent_name logger
    monitor step_number system_prompt system_prompt_template tool_description_template grammar
    tool_parser
"""


@pytest.mark.parametrize("path", PATHS)
def test_a_known_path_has_the_known_names(path: str) -> None:
    module = importlib.import_module(f"sanderling.{path}")
    assert module.__doc__
    assert set(PATHS[path].split()) <= set(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if name in dir(sanderling):
            assert value is getattr(sanderling, name)


@pytest.mark.parametrize("path", PATHS)
def test_a_known_path_loads_no_heavy_library(path: str) -> None:
    heavy = {"rich", "openai", "pydantic", "jinja2", "numpy", "e2b", "modal", "PIL"}
    script = f"import sys, sanderling.{path}; print(*({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_the_helpers_do_what_they_did() -> None:
    assert parse_code_blobs("Well.\n```py\nx = 1\n```<end_code>") == "x = 1"
    assert parse_code_blobs("[PY]x = 1[/PY]", ("[PY]", "[/PY]")) == "x = 1"
    with pytest.raises(AgentParsingError):
        parse_code_blobs("just talk")
    assert parse_json_tool_call('I call {"name": "add", "arguments": {"a": 1}}') == (
        "add",
        {"a": 1},
    )
    assert truncate_content("short") == "short"
    cut = truncate_content("x" * 100_000, 1_000)
    assert len(cut) < 1_200
    assert make_json_serializable({"a": {1}, 2: ("b",)}) == {"a": "{1}", "2": ["b"]}


def test_an_old_prompt_is_a_system_prompt() -> None:
    agent = sanderling.CodeAgent(
        [], sanderling.ScriptedModel([]), system_prompt=f"{CODE_SYSTEM_PROMPT}\nBe brief."
    )
    assert agent.system_prompt.endswith("\nBe brief.")
    assert "final_answer" in agent.system_prompt


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ATTRIBUTES.split())
def test_an_agent_has_its_attributes(name: str) -> None:
    agent = ToolCallingAgent([], ScriptedModel([]), verbosity_level=LogLevel.OFF)
    assert hasattr(agent, name)


def test_the_base_of_steps_has_its_old_name() -> None:
    assert AgentStepLog is MemoryStep


def test_a_logger_and_a_monitor_are_made_as_before() -> None:
    monitor = Monitor(ScriptedModel([]), AgentLogger(level=LogLevel.INFO))
    monitor.reset()
    assert monitor.total_input_token_count == 0
    assert Monitor(tracked_model="m", logger=None).tracked_model == "m"


@tool
def twice(number: int) -> int:
    """Doubles.

    Args:
        number: What.
    """
    return 2 * number


def test_the_interpreter_of_old() -> None:
    with pytest.warns(DeprecationWarning, match="LocalPythonExecutor"):
        made = LocalPythonInterpreter(["json"], {"twice": twice}, max_print_outputs_length=5)
    with made as python:
        output, logs, is_final_answer = python("print('x' * 50)\ntwice(number)", {"number": 4})
        assert (output, is_final_answer) == (8, False)
        assert 0 < logs.count("x") <= 5


HIDING = "final_answer = 41  # the answer\nprint(f'{final_answer} is final_answer')"
RENAMED = "final_answer_variable = 41\nprint(f'{final_answer_variable} is final_answer')"


@pytest.mark.parametrize(
    ("code", "fixed"),
    [
        (f"{HIDING}\nfinal_answer(3)", f"{RENAMED}\nfinal_answer(3)"),
        (
            "final_answer = 4\nfinal_answer(final_answer)",
            "final_answer_variable = 4\nfinal_answer(final_answer_variable)",
        ),
        ("final_answer += 1", "final_answer_variable += 1"),
        ("for final_answer in x: pass", "for final_answer_variable in x:\n    pass"),
        ("final_answer(3)  # kept", "final_answer(3)  # kept"),
        ("done = final_answer  # kept", "done = final_answer  # kept"),
        ("answer('final_answer = 3')", "answer('final_answer = 3')"),
        ("f(final_answer=3)", "f(final_answer=3)"),
        ("final_answer = (", "final_answer = ("),
    ],
)
def test_a_variable_that_hides_the_tool_is_renamed(code: str, fixed: str) -> None:
    assert fix_final_answer_code(code) == fixed
