"""Agents over a real HTTP connection: whole runs, exact tokens, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from sanderling import (
    ActionStep,
    AgentGenerationError,
    CodeAgent,
    FinalAnswerStep,
    LogLevel,
    OpenAIModel,
    ReplyBrokenOff,
    TokenUsage,
    ToolCallingAgent,
    tool,
)
from support.drivers import Driver, both_drivers
from support.openai_server import Answer, chunk, events, fails, says, serving, streams
from support.processes import lasting, sandboxes

STEPS = (
    "I look the prices up.\n<code>\ntea = price(product='tea')\nprint(tea)\n</code>",
    "Now I convert.\n<code>\ndollars = convert(euros=tea)\nprint(dollars)\n</code>",
    "That is it.\n<code>\nfinal_answer(f'{dollars:.2f} dollars')\n</code>",
)
FINAL = {"name": "final_answer", "arguments": '{"answer": "4.5"}'}
EACH = TokenUsage(11, 7)  # what the server counts for each reply


@tool
def price(product: str) -> float:
    """Looks a price up.

    Args:
        product: What.
    """
    return {"tea": 4.5}[product]


@tool
async def convert(euros: float) -> float:
    """Converts to dollars.

    Args:
        euros: How much.
    """
    await asyncio.sleep(0)
    return euros * 1.1


def model(url: str, **kwargs: Any) -> OpenAIModel:
    settings = {"max_retries": 0, "timeout": 10}
    return OpenAIModel("scripted", api_base=url, api_key="key", client_kwargs=settings, **kwargs)


def code_agent(url: str, **kwargs: Any) -> CodeAgent:
    kwargs.setdefault("verbosity_level", LogLevel.OFF)
    return CodeAgent([price, convert], model(url), **kwargs)


@both_drivers
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_three_steps_with_two_tools_and_exact_tokens(driver: Driver, streamed: bool) -> None:
    def reply(text: str) -> Answer:
        return streams(*text.splitlines(keepends=True)) if streamed else says(text)

    answers = [reply(text) for text in STEPS]
    with serving(*answers) as server, code_agent(server.url, stream_outputs=streamed) as agent:
        result = driver.run(agent, "What is tea in dollars?", return_full_result=True)
        assert result.output == "4.95 dollars"
        assert result.token_usage == EACH + EACH + EACH
        steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
        assert [step.token_usage for step in steps] == [EACH] * 3
        assert "4.95" in (steps[1].observations or "")
        sent = [request.body["messages"] for request in server.requests]
        assert [len(messages) for messages in sent] == [2, 4, 6]
        assert sent[1][: len(sent[0])] == sent[0]
        assert all(request.body.get("stream", False) is streamed for request in server.requests)


@both_drivers
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_three_steps_of_native_tool_calls(driver: Driver, streamed: bool) -> None:
    def call(name: str, **arguments: Any) -> Answer:
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": f"call_{name}", "type": "function", "function": function}
        if streamed:
            return streams({"tool_calls": [{"index": 0, **made}]}, finish_reason="tool_calls")
        return says(None, "tool_calls", tool_calls=[made])

    answers = [
        call("price", product="tea"),
        call("convert", euros=4.5),
        call("final_answer", answer="4.95"),
    ]
    with serving(*answers) as server:
        agent = ToolCallingAgent(
            [price, convert],
            model(server.url),
            stream_outputs=streamed,
            verbosity_level=LogLevel.OFF,
        )
        result = driver.run(agent, "What is tea in dollars?", return_full_result=True)
        assert result.output == "4.95"
        assert result.token_usage == EACH + EACH + EACH
        offered = [entry["function"]["name"] for entry in server.requests[0].body["tools"]]
        assert offered == ["price", "convert", "final_answer"]
        sent = [request.body["messages"] for request in server.requests]
        assert sent[2][: len(sent[1])] == sent[1]
        assert [entry["role"] for entry in sent[2][2:]] == ["assistant", "tool"] * 2
        assert [call["id"] for call in sent[2][2]["tool_calls"]] == ["call_price"]
        assert sent[2][3] == {"role": "tool", "content": "4.5", "tool_call_id": "call_price"}


def cut_half_way() -> Answer:
    return events([chunk({"content": "<code>\nprint("})], end="")


@both_drivers
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (fails(401, "bad key"), "key"),
        (fails(404, "no such model"), "scripted"),
        (fails(500, "oops"), "500"),
        (Answer("<html>not json</html>"), ""),
        (Answer("half", cut=True), ""),
        (cut_half_way(), ""),
    ],
    ids=["wrong key", "unknown model", "broken server", "garbage", "cut off", "cut stream"],
)
def test_a_server_that_fails_ends_the_run_and_loses_nothing(
    driver: Driver, streamed: bool, answer: Answer, told: str
) -> None:
    first = streams(STEPS[0]) if streamed else says(STEPS[0])
    with serving(first, answer) as server, code_agent(server.url, stream_outputs=streamed) as agent:
        with pytest.raises(AgentGenerationError) as caught:
            driver.run(agent, "What is tea in dollars?")
        assert told in str(caught.value)
        steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
        done, failed = steps
        assert done.observations == "Execution logs:\n4.5\nLast output from code snippet:\nNone"
        assert failed.error is caught.value
        assert failed.observations is None


@both_drivers
def test_a_stream_that_breaks_off_is_asked_for_again(driver: Driver) -> None:
    half = events([chunk({"content": "<code>\nprint("})], end="", cut=True)
    with serving(half, streams("<code>final_answer(5)</code>")) as server:
        again = OpenAIModel("m", server.url, "key", retry={"attempts": 2, "first_wait": 0})
        agent = CodeAgent([], again, stream_outputs=True, verbosity_level=LogLevel.OFF)
        told = driver.events(agent, "Go.")
    (broken,) = [event for event in told if isinstance(event, ReplyBrokenOff)]
    assert "broke the reply off" in broken.reason
    assert isinstance(told[-1], FinalAnswerStep)
    assert told[-1].output == 5
    (step,) = [event for event in told if isinstance(event, ActionStep)]
    assert step.model_output == "<code>final_answer(5)</code>"
    assert len(server.requests) == 2


@both_drivers
@pytest.mark.parametrize("attempts", [1, 2])
def test_a_stream_that_breaks_off_each_time_ends_the_run(driver: Driver, attempts: int) -> None:
    half = events([chunk({"content": "half"})], end="", cut=True)
    with serving(half, half, half) as server:
        again = OpenAIModel("m", server.url, "key", retry={"attempts": attempts, "first_wait": 0})
        agent = CodeAgent([], again, stream_outputs=True, verbosity_level=LogLevel.OFF)
        with pytest.raises(AgentGenerationError, match="broke the reply off"):
            driver.run(agent, "Go.")
    assert len(server.requests) == attempts


@both_drivers
def test_a_server_that_is_down_is_named(driver: Driver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    with code_agent(url) as agent, pytest.raises(AgentGenerationError) as caught:
        driver.run(agent, "Go.")
    assert str(port) in str(caught.value)


@both_drivers
def test_a_run_that_failed_can_go_on_when_the_server_is_back(driver: Driver) -> None:
    with (
        serving(says(STEPS[0]), fails(500, "oops"), says(STEPS[1]), says(STEPS[2])) as server,
        code_agent(server.url) as agent,
    ):
        with pytest.raises(AgentGenerationError):
            driver.run(agent, "What is tea in dollars?")
        assert driver.run(agent, "Go on.", reset=False) == "4.95 dollars"


def test_no_process_is_left_behind_by_a_run_that_failed() -> None:
    before = sandboxes()
    with serving(says(STEPS[0]), fails(500, "oops")) as server:
        agent = code_agent(server.url)
        with pytest.raises(AgentGenerationError):
            agent.run("Go.")
        assert sandboxes() - before  # the one that serves, and a copy of it
        agent.cleanup()
    assert lasting(sandboxes() - before) == set()


def test_cancelling_a_run_ends_the_request_that_waits() -> None:
    async def main(url: str) -> None:
        with code_agent(url) as agent:
            run = asyncio.create_task(agent.arun("Go."))
            while not server.requests:  # noqa: ASYNC110 - a thread serves, not this loop
                await asyncio.sleep(0)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    with serving(Answer("", stall=True)) as server:
        asyncio.run(main(server.url))


@both_drivers
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_call_without_a_name_is_an_error_of_its_step(driver: Driver, streamed: bool) -> None:
    def calls(**function: str) -> Answer:
        call = {"index": 0, "id": "call-1", "type": "function", "function": function}
        return streams({"tool_calls": [call]}) if streamed else says(None, tool_calls=[call])

    answers = [calls(arguments='{"product": "tea"}'), calls(**FINAL)]
    with serving(*answers) as server:
        agent = ToolCallingAgent(
            [price], model(server.url), stream_outputs=streamed, verbosity_level=LogLevel.OFF
        )
        assert driver.run(agent, "What is tea?") == "4.5"
        told = json.dumps(server.requests[1].body["messages"])
    assert "does not name a tool" in told
    assert "price, final_answer" in told
    assert '"name": ""' not in told  # which servers refuse


@both_drivers
def test_a_code_agent_goes_by_the_text_beside_a_call_without_a_name(driver: Driver) -> None:
    nameless = {"index": 0, "id": "call-1", "type": "function", "function": {"arguments": "{}"}}
    answer = streams("<code>\nfinal_answer(42)\n</code>", {"tool_calls": [nameless]})
    with serving(answer) as server, code_agent(server.url, stream_outputs=True) as agent:
        assert driver.run(agent, "What is it?") == 42
