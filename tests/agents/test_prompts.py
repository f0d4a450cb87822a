"""The prompts: rendered in every combination, strict, and true to what they say."""

from __future__ import annotations

import ast
import itertools
import json
import re
from typing import Any

import pytest

from sanderling import (
    EMPTY_PROMPT_TEMPLATES,
    CodeAgent,
    LocalPythonExecutor,
    LogLevel,
    ModelProfile,
    MultiStepAgent,
    PromptTemplates,
    ScriptedModel,
    Tool,
    ToolCallingAgent,
)
from sanderling.agents._prompts import checked_templates, load_templates, render
from sanderling.loop import CodeTags, extract_code
from sanderling.sandbox import create_executor
from support.tools import add, greet

NAMES = ["code_agent", "structured_code_agent", "toolcalling_agent"]
SMALL = ModelProfile.load("small")


class Slow(Tool):
    name = "slow"
    description = 'Says """hello""" {{ slowly }}.\n\nTwice.'
    inputs = {"city": {"type": "string", "description": "Where.\nOr [b]not[/b]."}}
    output_type = "string"

    def forward(self, city: str) -> str:
        return city


def helper() -> ToolCallingAgent:
    return ToolCallingAgent(
        [],
        ScriptedModel([]),
        name="helper",
        description="Searches the web.\nTakes a while.",
        verbosity_level=LogLevel.OFF,
    )


def code_agent(**kwargs: Any) -> CodeAgent:
    kwargs.setdefault("tools", [add])
    profile = kwargs.pop("profile", None)
    return CodeAgent(
        model=ScriptedModel([], profile=profile), verbosity_level=LogLevel.OFF, **kwargs
    )


def reads_well(prompt: str) -> None:
    assert "{{" not in prompt.replace("{{ slowly }}", "")
    assert "{%" not in prompt
    assert not re.search(r"\n{4,}", prompt)
    assert prompt == prompt.strip()


@pytest.mark.parametrize(
    ("tools", "managed", "imports", "instructions", "tags", "profile", "structured"),
    [
        combination
        for combination in itertools.product(
            [[], [add, greet, Slow()]],
            [False, True],
            [[], ["numpy"], ["*"]],
            [None, "Speak like a pirate."],
            [None, "markdown", ("[PY]", "[/PY]")],
            [None, SMALL],
            [False, True],
        )
        if not (combination[-1] and combination[-2])
    ],
)
def test_a_prompt_for_code_in_every_combination(
    tools: Any, managed: bool, imports: Any, instructions: Any, tags: Any, profile: Any,
    structured: bool,
) -> None:  # fmt: skip
    agent = code_agent(
        tools=tools,
        managed_agents=[helper()] if managed else [],
        additional_authorized_imports=imports,
        instructions=instructions,
        code_block_tags=tags,
        profile=profile,
        use_structured_outputs_internally=structured,
    )
    prompt = agent.system_prompt
    reads_well(prompt)
    slow, hands_over = "def slow(city: str) -> str:", "def helper("
    if profile is not None:
        slow, hands_over = "slow(city) # Says", "helper(task) # Searches the web. Takes a while."
    assert (slow in prompt) == bool(tools)
    assert (hands_over in prompt) == managed
    assert ("Speak like a pirate." in prompt) == bool(instructions)
    if profile is None:
        assert ("numpy" in prompt) == (imports == ["numpy"])
        assert ("any package" in prompt) == (imports == ["*"])
        assert "def final_answer(answer: Any)" in prompt
    if not structured:
        opening = {None: "<code>", "markdown": "```python"}.get(tags, "[PY]")
        assert opening in prompt
        assert opening == "<code>" or "<code>" not in prompt


def test_parallel_is_spoken_of_where_code_has_it() -> None:
    class Other(CodeAgent):
        def create_python_executor(self) -> Any:
            return lambda code: (None, code, False)

    with LocalPythonExecutor() as ours:
        assert "parallel(" in code_agent(executor=ours).system_prompt
    assert "parallel(" in code_agent().system_prompt
    assert "parallel(" not in code_agent(executor=lambda code: (None, "")).system_prompt
    other = Other([add], ScriptedModel([]), verbosity_level=LogLevel.OFF)
    assert "parallel(" not in other.system_prompt


@pytest.mark.parametrize("structured", [False, True])
def test_walls_are_spoken_of_where_there_are_some(structured: bool) -> None:
    def told(**kwargs: Any) -> bool:
        agent = code_agent(use_structured_outputs_internally=structured, **kwargs)
        return "shut off from the network" in agent.system_prompt

    with LocalPythonExecutor() as ours, create_executor("inprocess") as without_walls:
        assert told(executor=ours)
        assert not told(executor=without_walls)
    assert told()
    assert told(executor_type="auto")
    assert not told(executor_type="inprocess")
    assert not told(executor=lambda code: (None, ""))


@pytest.mark.parametrize("tools", [[], [add, Slow()]])
@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("instructions", [None, "Speak like a pirate."])
def test_a_prompt_for_tool_calls_in_every_combination(
    tools: Any, managed: bool, instructions: Any
) -> None:
    agent = ToolCallingAgent(
        tools,
        ScriptedModel([]),
        managed_agents=[helper()] if managed else [],
        instructions=instructions,
        verbosity_level=LogLevel.OFF,
    )
    prompt = agent.system_prompt
    reads_well(prompt)
    assert ("- slow: Says" in prompt) == bool(tools)
    assert ("- helper: Searches" in prompt) == managed
    assert ("Speak like a pirate." in prompt) == bool(instructions)
    assert "- final_answer: " in prompt


@pytest.mark.parametrize("name", NAMES)
def test_all_other_prompts_render_with_their_variables_and_no_more(name: str) -> None:
    templates = load_templates(name)
    everything = {"add": add, "slow": Slow()}
    for tools, managed in itertools.product(({}, everything), ({}, {"helper": helper()})):
        known = {"task": "The task {{ x }}.", "tools": tools, "managed_agents": managed}
        planning = templates["planning"]
        first = render(planning["initial_plan"], **known)
        later = render(planning["update_plan_post_messages"], remaining_steps=4, **known)
        for text in (first, later):
            assert "The task {{ x }}." in text
            assert ("slow" in text) == bool(tools)
            assert ("- helper: Searches" in text) == bool(managed)
            assert text.endswith("<end_plan>")
        assert "At most 4 turns" in later
        assert "The task" in render(planning["update_plan_pre_messages"], task=known["task"])
    given = render(templates["managed_agent"]["task"], name="helper", task="Look.")
    assert "helper" in given
    assert "Look." in given
    report = render(templates["managed_agent"]["report"], name="helper", final_answer="It rains.")
    assert "'helper'" in report
    assert report.endswith("It rains.")
    assert render(templates["final_answer"]["pre_messages"])
    assert "Look." in render(templates["final_answer"]["post_messages"], task="Look.")


@pytest.mark.parametrize("name", NAMES)
def test_our_templates_have_every_key(name: str) -> None:
    templates = load_templates(name)
    assert checked_templates(templates) == templates
    assert templates.keys() == EMPTY_PROMPT_TEMPLATES.keys()
    assert checked_templates(EMPTY_PROMPT_TEMPLATES) == EMPTY_PROMPT_TEMPLATES


def test_a_template_that_asks_for_facts_needs_all_that_do() -> None:
    templates: Any = {
        **EMPTY_PROMPT_TEMPLATES,
        "planning": {**EMPTY_PROMPT_TEMPLATES["planning"], "initial_facts": "Facts?"},
        "managed_agent": None,
    }
    with pytest.raises(ValueError, match="lacks") as caught:
        checked_templates(templates)
    for key in (
        "planning.update_facts_pre_messages",
        "planning.update_facts_post_messages",
        "managed_agent.task",
        "managed_agent.report",
    ):
        assert key in str(caught.value)


@pytest.mark.parametrize("section", ["initial_plan", "update_plan_post_messages"])
def test_an_unknown_variable_of_a_plan_is_named(section: str) -> None:
    agent = code_agent(planning_interval=1)
    templates: Any = agent.prompt_templates
    templates["planning"][section] = "{{ no_such_variable }}"
    agent.prompt_templates = templates
    agent.model = ScriptedModel(["plan", "<code>1</code>", "plan"])
    with pytest.raises(ValueError, match="no_such_variable"):
        agent.run("Go.")
    agent.cleanup()


def test_a_template_can_reach_nothing_of_this_process() -> None:
    with pytest.raises(ValueError, match="cannot be rendered"):
        render("{{ tools.__class__.__mro__[1].__subclasses__() }}", tools={})


def test_no_text_but_a_template_is_rendered() -> None:
    text = "{{ 6 * 7 }}{% raw %}"
    model = ScriptedModel(
        [f"<code>\nprint({text!r})\n</code>", f"<code>final_answer({text!r})</code>"]
    )
    slow = Slow()
    slow.description, slow.inputs = text, {"city": {"type": "string", "description": text}}
    other = helper()
    other.description = text
    with CodeAgent(
        [slow], model, managed_agents=[other], instructions=text, verbosity_level=LogLevel.OFF
    ) as agent:
        assert agent.run(text, additional_args={"given": text}) == text
    sent = "".join(message.text for message in model.requests[-1].messages)
    # The descriptions of tool, argument and agent, the instructions, task, code and observation.
    assert sent.count(text) >= 7
    assert "42" not in sent


def test_templates_in_the_form_of_smolagents_render() -> None:
    template = (
        "{%- for tool in tools.values() %}{{ tool.to_code_prompt() }}{% endfor %}"
        "{%- if managed_agents and managed_agents.values() | list %}"
        "{%- for agent in managed_agents.values() %}{{ agent.name }}: {{ agent.description }}"
        "{% endfor %}{% endif %}{{ authorized_imports }}"
        "{%- if custom_instructions %}{{ custom_instructions }}{% endif %}"
        "{{ code_block_opening_tag }}{{ code_block_closing_tag }}"
    )
    templates: PromptTemplates = {**EMPTY_PROMPT_TEMPLATES, "system_prompt": template}
    agent = code_agent(prompt_templates=templates, managed_agents=[helper()], instructions="Hi.")
    assert "def add(" in agent.system_prompt
    assert "helper: Searches the web." in agent.system_prompt
    assert agent.system_prompt.endswith("Hi.<code></code>")


def test_the_example_of_the_prompt_is_what_the_parser_reads() -> None:
    example = code_agent(tools=[]).system_prompt.partition("Beside plain Python")[0]
    turns = re.findall(r"<code>\n.*?</code>", example.partition("Here is how")[2], re.DOTALL)
    assert len(turns) == 2
    scope: dict[str, Any] = {"final_answer": lambda answer: scope.update(answer=answer)}
    for turn in turns:
        exec(extract_code(turn, CodeTags()), scope)
    assert scope["answer"] == "[2000]: 366 days"


def test_the_example_of_the_structured_prompt_is_json_with_python() -> None:
    prompt = code_agent(use_structured_outputs_internally=True).system_prompt
    turns = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"thought"')]
    assert len(turns) == 2
    for turn in turns:
        assert ast.parse(turn["code"]).body
        assert turn["thought"]


def test_the_prompt_of_an_agent_in_use_is_a_copy() -> None:
    agents: list[MultiStepAgent] = [code_agent(), code_agent()]
    agents[0].prompt_templates["planning"]["initial_plan"] = "changed"
    assert agents[1].prompt_templates["planning"]["initial_plan"] != "changed"
