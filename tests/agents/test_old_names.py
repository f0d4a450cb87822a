"""What programs for earlier versions of smolagents call and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from sanderling import ActionStep, CodeAgent, LogLevel, ScriptedModel, TaskStep, ToolCallingAgent
from sanderling.agents import (
    DEFAULT_TOOL_DESCRIPTION_TEMPLATE,
    ManagedAgent,
    format_prompt_with_managed_agents_descriptions,
    format_prompt_with_tools,
    get_tool_description_with_args,
    get_tool_descriptions,
    show_agents_descriptions,
)
from sanderling.memory import SystemPromptStep
from support.drivers import Driver, both_drivers
from support.play import says
from support.tools import add, greet

ANSWER = says(None, ("final_answer", {"answer": 7}))


def agent_for(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    kwargs = {"verbosity_level": LogLevel.OFF, **kwargs}
    return ToolCallingAgent([add, greet], ScriptedModel(replies), **kwargs)


def test_logs_are_a_live_view() -> None:
    agent = agent_for(says("", ("add", {"a": 1, "b": 2})), ANSWER)
    with pytest.warns(DeprecationWarning, match=r"agent\.memory\.steps"):
        logs = agent.logs
    assert [type(step) for step in logs] == [SystemPromptStep]
    agent.memory.steps.append(TaskStep("one"))
    logs.append(ActionStep(1))
    assert len(logs) == 3
    assert agent.memory.steps[-1] is logs[-1] is logs[1:][1]
    logs[1] = TaskStep("two")
    del logs[2]
    assert [getattr(step, "task", None) for step in agent.memory.steps] == ["two"]
    logs[0] = SystemPromptStep("mine")
    assert agent.memory.system_prompt.system_prompt == "mine"
    with pytest.raises(ValueError, match="stays there"):
        del logs[0]
    with pytest.raises(ValueError, match="stays there"):
        logs.insert(0, TaskStep("x"))
    assert repr(logs) == repr([agent.memory.system_prompt, *agent.memory.steps])


@both_drivers
def test_what_a_run_leaves_is_read_from_the_agent(driver: Driver) -> None:
    agent = agent_for(says("", ("add", {"a": 1, "b": 2})), ANSWER)
    assert (agent.task, agent.step_number, agent.input_messages) == (None, 0, None)
    result = driver.run(agent, "Add.", return_full_result=True)
    assert (agent.task, agent.step_number) == ("Add.", 2)
    assert isinstance(agent.model, ScriptedModel)
    assert agent.input_messages == list(agent.model.requests[-1].messages)
    assert agent.monitor.get_total_token_counts() == result.token_usage
    assert agent.monitor.total_input_token_count == result.token_usage.input_tokens
    assert agent.monitor.total_output_token_count == result.token_usage.output_tokens


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            lambda agent: agent.write_inner_memory_from_logs(summary_mode=True),
            lambda agent: agent.write_memory_to_messages(True),
        ),
        (
            lambda agent: agent.get_succinct_logs()[1:],
            lambda agent: agent.memory.get_succinct_steps(),
        ),
        (lambda agent: agent.agent_name, lambda agent: "ToolCallingAgent"),
        (
            lambda agent: agent.system_prompt_template,
            lambda agent: agent.prompt_templates["system_prompt"],
        ),
    ],
)
def test_an_old_name_warns_and_works(
    old: Callable[[ToolCallingAgent], Any], new: Callable[[ToolCallingAgent], Any]
) -> None:
    agent = agent_for(ANSWER)
    agent.run("Go.")
    with pytest.warns(DeprecationWarning, match="is deprecated: use"):
        found = old(agent)
    assert found == new(agent)


def test_memory_reads_as_messages_that_are_read_like_dicts() -> None:
    agent = agent_for(ANSWER)
    agent.run("Go.")
    messages = agent.write_memory_to_messages()
    assert messages[0]["role"] == "system"
    assert messages[1]["content"] is messages[1].content
    assert messages == agent.memory.to_messages()


def test_the_system_prompt_is_read_only() -> None:
    agent = agent_for()
    with pytest.raises(AttributeError, match=r"set prompt_templates\['system_prompt'\]"):
        agent.system_prompt = "x"


OLD_PROMPT = (
    "Tools ({{tool_names}}):\n{{tool_descriptions}}\n{{managed_agents_descriptions}}"
    "\nImports: {{authorized_imports}}"
)


def code_agent(**kwargs: Any) -> CodeAgent:
    kwargs = {"verbosity_level": LogLevel.OFF, "executor_type": "inprocess", **kwargs}
    return CodeAgent([add], ScriptedModel([]), **kwargs)


def test_a_system_prompt_with_the_old_tags() -> None:
    child = agent_for(name="helper", description="Helps with numbers.")
    prompt = code_agent(system_prompt=OLD_PROMPT, managed_agents=[child]).system_prompt
    assert prompt.startswith("Tools ('add', 'final_answer'):\n- add: Adds two numbers.")
    assert "- helper: Helps with numbers." in prompt
    assert "random" in prompt.partition("Imports: ")[2]
    bare = agent_for(system_prompt="{{ tool_descriptions }}").system_prompt
    assert "Greets somebody." in bare


def test_a_system_prompt_that_keeps_something_from_the_model_is_refused() -> None:
    child = agent_for(name="helper", description="Helps.")
    with pytest.raises(ValueError, match=r"managed_agents.*helper"):
        agent_for(system_prompt="{{tool_descriptions}}", managed_agents=[child])
    with pytest.raises(ValueError, match=r"authorized_imports.*numpy"):
        code_agent(system_prompt="x", additional_authorized_imports=["numpy"])
    with pytest.raises(ValueError, match="leave out system_prompt"):
        agent_for(system_prompt="x", prompt_templates=agent_for().prompt_templates)
    assert code_agent(system_prompt="Just code.").system_prompt == "Just code."


@pytest.mark.parametrize("make", [agent_for, code_agent])
@pytest.mark.parametrize("system_prompt", [None, OLD_PROMPT])
def test_a_template_for_tools_holds_for_every_system_prompt(
    make: Any, system_prompt: str | None
) -> None:
    if make is agent_for and system_prompt is not None:
        system_prompt = system_prompt.partition("\nImports")[0]
    agent = make(tool_description_template="*{{ tool.name }}*", system_prompt=system_prompt)
    assert "*add*" in agent.system_prompt
    assert "Adds two numbers" not in agent.system_prompt


def test_the_helpers_for_prompts() -> None:
    tools = agent_for().tools
    assert get_tool_description_with_args(tools["add"]).startswith("- add: Adds two numbers.")
    assert get_tool_descriptions(tools, "{{ tool.name }}") == "add\ngreet\nfinal_answer"
    assert "tool.inputs" in DEFAULT_TOOL_DESCRIPTION_TEMPLATE
    filled = format_prompt_with_tools(tools, "{{tool_names}} {{ other }}", None)
    assert filled == "'add', 'greet', 'final_answer' {{ other }}"
    agents: Any = {"helper": agent_for(name="helper", description="Helps.")}
    assert show_agents_descriptions({}) == ""
    shown = format_prompt_with_managed_agents_descriptions("<<a>>", agents, "<<a>>")
    assert "- helper: Helps." in shown
    with pytest.raises(ValueError, match=re.escape("{{managed_agents_descriptions}}")):
        format_prompt_with_managed_agents_descriptions("nothing", agents)


def managed(agent: ToolCallingAgent, **kwargs: Any) -> ManagedAgent:
    with pytest.warns(DeprecationWarning, match="name= and description="):
        return ManagedAgent(agent, "helper", "Helps.", **kwargs)


@both_drivers
def test_a_managed_agent_of_the_old_kind(driver: Driver) -> None:
    worker = agent_for(ANSWER)
    helper = managed(worker, additional_prompting="Be brief.", provide_run_summary=True)
    manager = agent_for(
        says("", ("helper", {"request": "Count."})), ANSWER, managed_agents=[helper]
    )
    assert driver.run(manager, "Go.") == 7
    step = manager.memory.steps[1]
    assert isinstance(step, ActionStep)
    assert "7" in (step.observations or "")
    assert "<summary_of_work>" in (step.observations or "")
    assert isinstance(worker.model, ScriptedModel)
    told = worker.model.requests[0].messages[1].text
    assert "Count." in told
    assert "Be brief." in told
    assert (worker.name, worker.description) == (None, None)
    assert "Be brief." not in worker.prompt_templates["managed_agent"]["task"]


def test_an_old_managed_agent_is_called_and_shows_its_task() -> None:
    helper = managed(agent_for(ANSWER), managed_agent_prompt="{{ name }}, do: {{ task }}")
    assert helper.write_full_task("count") == "helper, do: count"
    older = managed(agent_for(ANSWER), managed_agent_prompt="{name}, do: {task} {{ task }}")
    assert older.write_full_task("{name}") == "helper, do: {name} {name}"
    assert "7" in helper("Count.")
    assert helper.inputs["request"]["type"] == "string"
