"""CodeAgent with a scripted model and the real sandbox, under both drivers."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from sanderling import (
    ActionStep,
    AgentError,
    AgentExecutionError,
    AgentLogger,
    AgentParsingError,
    ChatMessage,
    ChatMessageStreamDelta,
    CodeAgent,
    LogLevel,
    MessageRole,
    ModelProfile,
    RunResult,
    ScriptedModel,
    TaskStep,
    TokenUsage,
    tool,
)
from support.drivers import Driver, both_drivers
from support.tools import Gate, add, greet


def code(*lines: str, thought: str = "Thinking.") -> str:
    return f"{thought}\n<code>\n" + "\n".join(lines) + "\n</code>"


ANSWER = code("final_answer('done')")
Make = Callable[..., CodeAgent]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes quiet agents and ends their sandboxes."""
    agents: list[CodeAgent] = []

    def new(replies: Any, tools: Any = (), **kwargs: Any) -> CodeAgent:
        kwargs.setdefault("verbosity_level", LogLevel.OFF)
        model = replies if callable(replies) else ScriptedModel(replies)
        agents.append(CodeAgent(tools=list(tools), model=model, **kwargs))
        return agents[-1]

    yield new
    for agent in agents:
        agent.cleanup()


def steps(agent: CodeAgent) -> list[ActionStep]:
    return [step for step in agent.memory.steps if isinstance(step, ActionStep)]


@both_drivers
def test_a_run_from_task_to_answer(make: Make, driver: Driver) -> None:
    agent = make(
        [
            code("x = add(a=1, b=2)", "print('sum', x)", "x"),
            code("final_answer({'sum': x, 'text': greet('Ada')})"),
        ],
        [add, greet],
    )
    result = driver.run(agent, "Add and greet.", return_full_result=True)
    assert isinstance(result, RunResult)
    assert result.output == {"sum": 3, "text": "Hello, Ada!"}
    assert result.state == "success"
    first, second = steps(agent)
    assert first.observations == "Execution logs:\nsum 3\nLast output from code snippet:\n3"
    assert first.action_output == 3
    assert second.is_final_answer
    usage = TokenUsage(0, 0)
    for step in (first, second):
        assert step.token_usage is not None
        usage += step.token_usage
    assert result.token_usage == usage


@both_drivers
def test_the_events_come_in_order(make: Make, driver: Driver) -> None:
    agent = make([code("print('hi')"), ANSWER], stream_outputs=True)
    events = driver.events(agent, "Go.")
    deltas = [event for event in events if isinstance(event, ChatMessageStreamDelta)]
    assert "".join(delta.content or "" for delta in deltas).startswith("Thinking.\n<code>")
    names = [type(event).__name__ for event in events if event not in deltas]
    assert names == [
        "RunStarted",
        *["StepStarted", "ModelReply", "ToolCall"],
        *["CodeOutputDelta", "ActionOutput", "ActionStep"],
        *["StepStarted", "ModelReply", "ToolCall", "ActionOutput", "ActionStep"],
        "FinalAnswerStep",
    ]
    assert events[-1].output == "done"


@both_drivers
def test_the_history_of_a_step_is_a_prefix_of_the_next(make: Make, driver: Driver) -> None:
    agent = make([code(f"x = {n}") for n in range(9)] + [ANSWER])
    driver.run(agent, "Count.")
    assert isinstance(agent.model, ScriptedModel)
    sent = [request.messages for request in agent.model.requests]
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before
        assert len(after) == len(before) + 2


@both_drivers
def test_variables_stay_from_step_to_step_and_from_run_to_run(make: Make, driver: Driver) -> None:
    agent = make(
        [
            code("x = 1"),
            code("final_answer(x)"),
            code("final_answer(x + 1)"),
            code("final_answer('x' in globals())"),
        ]
    )
    assert driver.run(agent, "One.") == 1
    assert driver.run(agent, "Two.", reset=False) == 2
    tasks = [step.task for step in agent.memory.steps if isinstance(step, TaskStep)]
    assert tasks == ["One.", "Two."]
    assert driver.run(agent, "Three.") is False
    assert len(agent.memory.steps) == 2


@both_drivers
def test_additional_arguments_are_told_and_are_variables(make: Make, driver: Driver) -> None:
    agent = make([code("final_answer([n * 2 for n in numbers])")])
    assert driver.run(agent, "Double.", additional_args={"numbers": [1, 2**70]}) == [2, 2**71]
    task = agent.memory.steps[0]
    assert isinstance(task, TaskStep)
    assert "numbers (list): [1, 1180591620717411303424]" in task.task
    assert agent.state == {"numbers": [1, 2**70]}


@both_drivers
def test_values_that_cannot_be_written_pass_through_all_the_same(
    make: Make, driver: Driver
) -> None:
    huge = 10**5000  # Python refuses to write more than 4,300 digits
    agent = make(
        [code("add(a=huge, b=1)"), code("final_answer([huge])")],
        [add],
        logger=AgentLogger(console=Console(file=io.StringIO())),
    )
    result = driver.run(agent, "Go.", additional_args={"huge": huge}, return_full_result=True)
    assert result.output == [huge]
    assert steps(agent)[0].action_output == huge + 1
    assert json.loads(json.dumps(result.dict()))["output"] == [hex(huge)]


@both_drivers
def test_images_reach_the_model(make: Make, driver: Driver) -> None:
    url = "https://example.org/cat.png"
    agent = make([ANSWER])
    driver.run(agent, "Look.", images=[url])
    assert isinstance(agent.model, ScriptedModel)
    assert agent.model.requests[0].messages[1].dict()["content"] == [
        {"type": "text", "text": "New task:\nLook."},
        {"type": "image", "url": url},
    ]


@both_drivers
@pytest.mark.parametrize(
    ("action", "kind", "told"),
    [
        ("I just talk.", AgentParsingError, "<code>"),
        (code("x = ("), AgentExecutionError, "SyntaxError"),
        (code("y = 1", "y / 0"), AgentExecutionError, "line 2"),
        (code("import os"), AgentExecutionError, "not allowed"),
        (code("while True: pass"), AgentExecutionError, "exceeded"),
        (code("import ctypes", "ctypes.string_at(0)"), AgentExecutionError, "interpreter"),
        (code("add(a=1)"), AgentExecutionError, "'b'"),
        (code("add(a=None, b=1)"), AgentExecutionError, "integer"),
        (code("add(a='x', b=1)"), AgentExecutionError, "can only concatenate"),
        (code("broken()"), AgentExecutionError, "the disk is full"),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)
def test_a_mistake_is_shown_to_the_model_and_the_run_goes_on(
    make: Make, driver: Driver, action: str, kind: type[AgentError], told: str
) -> None:
    @tool
    def broken() -> str:
        """Breaks."""
        raise OSError("the disk is full")

    agent = make(
        [action, ANSWER],
        [add, broken],
        executor_kwargs={"timeout_seconds": 0.5},
        additional_authorized_imports=["ctypes"],
    )
    assert driver.run(agent, "Go.") == "done"
    error = steps(agent)[0].error
    assert type(error) is kind
    assert told in str(error)
    assert isinstance(agent.model, ScriptedModel)
    assert told in agent.model.requests[1].messages[-1].text


@both_drivers
def test_what_was_printed_before_an_error_is_kept(make: Make, driver: Driver) -> None:
    agent = make([code("print('so far')", "1 / 0"), ANSWER])
    driver.run(agent, "Go.")
    assert steps(agent)[0].observations == "Execution logs:\nso far"


@both_drivers
def test_a_reply_cut_off_at_the_limit_is_named_as_such_and_not_run(
    make: Make, driver: Driver
) -> None:
    half = ChatMessage(
        MessageRole.ASSISTANT, "<code>\nprint('half')\nprint('ha", finish_reason="length"
    )
    agent = make([half, ANSWER])
    driver.run(agent, "Go.")
    step = steps(agent)[0]
    assert "cut off" in str(step.error)
    assert step.code_action is None


@pytest.mark.parametrize(
    "line",
    [
        "html = '<b></code>'",
        'html = """<pre>\n</code></pre>"""',
        "html = f'{1}</code>'",
        "print('Observation: rain')",
    ],
)
def test_a_stop_sequence_within_a_string_is_explained(make: Make, line: str) -> None:
    agent = make([code(line), ANSWER])
    assert agent.run("t") == "done"
    said = str(steps(agent)[0].error)
    assert "unterminated" in said
    assert "'</cod' + 'e>'" in said
    assert "'Observation:'" in said


@both_drivers
def test_tools_called_together_run_together(make: Make, driver: Driver) -> None:
    meeting = threading.Barrier(4)

    @tool
    def meet(who: int) -> int:
        """Waits for three others.

        Args:
            who: Anybody.
        """
        meeting.wait(timeout=20)
        return who

    agent = make(
        [
            code(
                "from concurrent.futures import ThreadPoolExecutor",
                "with ThreadPoolExecutor(4) as pool:",
                "    final_answer(sorted(pool.map(meet, range(4))))",
            )
        ],
        [meet],
        additional_authorized_imports=["concurrent"],
    )
    assert driver.run(agent, "Meet.") == [0, 1, 2, 3]


def test_a_tool_runs_in_the_thread_that_called_run(make: Make) -> None:
    database = sqlite3.connect(":memory:")  # usable in the thread that made it, and in no other

    @tool
    def query(sql: str) -> list:  # type: ignore[type-arg]  # as users write it
        """Asks the database.

        Args:
            sql: The question.
        """
        return database.execute(sql).fetchall()

    agent = make([code("final_answer(query('select 40 + 2'))")], [query])
    assert agent.run("Ask.") == [(42,)]
    database.close()


@both_drivers
def test_the_limit_of_steps_forces_an_answer(make: Make, driver: Driver) -> None:
    agent = make([code("x = 1"), code("x = 2"), "I think 2."])
    result = driver.run(agent, "Go.", max_steps=2, return_full_result=True)
    assert (result.output, result.state) == ("I think 2.", "max_steps_error")
    assert isinstance(agent.model, ScriptedModel)
    last = agent.model.requests[-1].messages
    assert [last[0].role, last[-1].role] == [MessageRole.SYSTEM, MessageRole.USER]
    assert "Go." in last[-1].text


@both_drivers
def test_callbacks_see_the_run_and_may_change_what_the_model_reads(
    make: Make, driver: Driver
) -> None:
    seen = []

    def hide(memory_step: ActionStep, agent: CodeAgent) -> None:
        seen.append((memory_step.step_number, len(agent.memory.steps)))
        memory_step.observations = "hidden"

    agent = make([code("print('secret')"), ANSWER], step_callbacks=[hide])
    driver.run(agent, "Go.")
    assert seen == [(1, 2), (2, 3)]
    assert isinstance(agent.model, ScriptedModel)
    assert agent.model.requests[1].messages[-1].text == "Observation:\nhidden"


@both_drivers
def test_an_answer_that_fails_its_check_goes_back(make: Make, driver: Driver) -> None:
    def is_even(answer: Any, memory: Any, agent: Any) -> bool:
        return isinstance(answer, int) and answer % 2 == 0

    agent = make([code("final_answer(3)"), code("final_answer(4)")], final_answer_checks=[is_even])
    assert driver.run(agent, "Even, please.") == 4
    assert "is_even" in str(steps(agent)[0].error)


@both_drivers
def test_the_answer_counts_even_where_the_code_tries_to_go_on(make: Make, driver: Driver) -> None:
    agent = make(
        [code("try:", "    final_answer(1)", "except BaseException:", "    print('caught')")]
    )
    assert driver.run(agent, "Go.") == 1


def test_closing_the_stream_early_is_clean_and_the_agent_goes_on(make: Make) -> None:
    agent = make([code("x = 1"), code("x = 2"), code("final_answer(x)")])
    stream = agent.run("Go.", stream=True)
    for event in stream:
        if isinstance(event, ActionStep):
            break
    stream.close()
    assert agent.run("Go on.", reset=False) == 2


def test_a_run_that_is_not_over_keeps_its_conversation_to_itself(make: Make) -> None:
    agent = make([ANSWER] * 3)
    stream = agent.run("One.", stream=True)
    next(stream)
    with pytest.raises(AgentError, match="reset=True"):
        agent.run("Two.", reset=False)
    assert agent.run("Three.") == "done"
    stream.close()


def test_a_profile_brings_prompt_marks_grammar_and_stops(make: Make) -> None:
    profile = ModelProfile(
        name="tiny",
        prompts={"system_prompt": "Write {{ code_block_opening_tag }}."},
        grammar="root ::= .*",
        stop_sequences=("\n\n",),
        code_block_tags=("[PY]", "[/PY]"),
        options={"temperature": 0},
    )
    model = ScriptedModel(["[PY]\nfinal_answer(1)\n[/PY]"], profile=profile)
    agent = make(model)
    assert agent.run("Go.") == 1
    request = model.requests[0]
    assert request.messages[0].text == "Write [PY]."
    assert request.stop_sequences == ("\n\n", "[/PY]")
    assert request.options == {"temperature": 0, "grammar": "root ::= .*"}


def test_a_plain_function_is_a_model(make: Make) -> None:
    def model(messages: list[ChatMessage]) -> ChatMessage:
        assert messages[0]["role"] == "system"
        return ChatMessage(MessageRole.ASSISTANT, ANSWER)

    assert make(model).run("Go.") == "done"


def test_the_prompt_tells_tools_imports_marks_and_instructions(make: Make) -> None:
    agent = make(
        [ANSWER],
        [add],
        additional_authorized_imports=["numpy"],
        instructions="Speak like a pirate.",
        code_block_tags="markdown",
    )
    prompt = agent.system_prompt
    assert "def add(a: int, b: int) -> int:" in prompt
    assert "numpy" in prompt
    assert "Speak like a pirate." in prompt
    assert "```python" in prompt
    assert "<code>" not in prompt
    everything = make([ANSWER], additional_authorized_imports=["*"]).system_prompt
    assert "any package" in everything


def test_ones_own_prompts_are_used_and_checked(make: Make) -> None:
    agent = make([ANSWER])
    templates = agent.prompt_templates
    templates["system_prompt"] = (
        "Tools: {% for tool in tools.values() %}{{ tool.name }} {% endfor %}"
    )
    mine = make([ANSWER], [add], prompt_templates=templates)
    assert mine.system_prompt == "Tools: add final_answer "
    with pytest.raises(ValueError, match=r"final_answer\.pre_messages"):
        make([ANSWER], prompt_templates={"system_prompt": "x"})
    templates["system_prompt"] = "{{ no_such_variable }}"
    with pytest.raises(ValueError, match="no_such_variable"):
        make([ANSWER], prompt_templates=templates).run("Go.")


def test_bad_definitions_are_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="two tools"):
        make([ANSWER], [add, add])
    with pytest.raises(ValueError, match="identifier"):
        make([ANSWER], name="not a name")
    with pytest.raises(ValueError, match="max_steps"):
        make([ANSWER], max_steps=0)
    with pytest.raises(ValueError, match="executor type"):
        make([ANSWER], executor_type="nowhere")
    with pytest.raises(ValueError, match="pip install nosuchmodule"):
        make([ANSWER], additional_authorized_imports=["nosuchmodule"])
    with pytest.raises(TypeError, match="tool"):
        make([ANSWER], [7])
    with pytest.raises(TypeError, match="model"):
        CodeAgent(tools=[], model=None)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("task", ["", "  \n"])
def test_an_empty_task_is_refused(make: Make, task: str) -> None:
    agent = make([ANSWER])
    with pytest.raises(ValueError, match="task is empty"):
        agent.run(task)
    with pytest.raises(ValueError, match="task is empty"):
        asyncio.run(agent.arun(task))


def test_calls_that_have_not_begun_end_with_their_step(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    leave = code("calls = [hold._start(n) for n in range(3)]")
    monkeypatch.setattr("sanderling.runtime._sync._MOST_THREADS", 1)
    agent = make([leave, ANSWER], [tool(gate.hold)])
    assert agent.run("go") == "done"
    assert gate.begun == [0]
