"""What the form of an agent may choose, and what only the program that loads it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from sanderling import CodeAgent, LogLevel, ToolCallingAgent
from sanderling.models import OpenAIModel
from sanderling.sandbox import LocalPythonExecutor


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


QUIET: dict[str, Any] = {"verbosity_level": LogLevel.OFF}


def usual_form() -> dict[str, Any]:
    return CodeAgent([], OpenAIModel("m"), **QUIET).to_dict()


def test_an_agent_in_the_usual_place_comes_back_without_further_ado() -> None:
    made = CodeAgent([], OpenAIModel("gpt-5", temperature=0.5), max_steps=3, **QUIET)
    data = json.loads(json.dumps(made.to_dict()))
    assert CodeAgent.from_dict(data).to_dict() == data


@pytest.mark.parametrize(
    ("manager", "child"), [("CodeAgent", "ToolCallingAgent"), ("ToolCallingAgent", "CodeAgent")]
)
def test_a_fresh_process_loads_managed_agents_of_another_class(manager: str, child: str) -> None:
    model = OpenAIModel("m")
    kinds = {"CodeAgent": CodeAgent, "ToolCallingAgent": ToolCallingAgent}
    helper = kinds[child]([], model, name="helper", description="Helps.", **QUIET)
    form = kinds[manager]([], model, managed_agents=[helper], **QUIET).to_dict()
    script = f"""
import json, sys
from sanderling import {manager}
agent = {manager}.from_dict(json.load(sys.stdin))
print(type(agent.managed_agents["helper"]).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(form), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{child}\n", "")


def test_agents_of_ones_own_classes_are_told_apart_by_module() -> None:
    def derived(module: str) -> type[CodeAgent]:
        return type("Mine", (CodeAgent,), {"__module__": module, "__qualname__": "Mine"})

    first, second = derived("library"), derived("other_library")
    for kind in (first, second):
        data = kind([], OpenAIModel("m"), **QUIET).to_dict()
        assert type(CodeAgent.from_dict(data)) is kind


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"executor_type": "inprocess"}, r"sets executor_type, .*executor_type='inprocess'\)"),
        ({"executor_type": "docker"}, r"sets executor_type, .*executor_type='docker'\)"),
        ({"executor_kwargs": {"extra_read": ["/"]}}, r"executor_kwargs=\{'extra_read': \['/'\]\}"),
        ({"executor_kwargs": {"packages": ["evil"]}}, "sets executor_kwargs"),
        (
            {"model": {"class": "OpenAIModel", "data": {"model_id": "m", "api_base": "http://x"}}},
            r"api_base='http://x'\) Then give it to the agent: from_dict\(data, model=\.\.\.\)",
        ),
        (
            {"model": {"class": "TransformersModel", "data": {"trust_remote_code": True}}},
            "trust_remote_code=True",
        ),
        ({"model": {"class": "ReplayModel", "data": {"path": "/etc/passwd"}}}, "sets path"),
    ],
)
def test_a_form_cannot_weaken_the_walls_nor_send_keys_elsewhere(
    settings: dict[str, Any], told: str
) -> None:
    form = {**usual_form(), **settings}
    with pytest.raises(ValueError, match=told):
        CodeAgent.from_dict(form)
    child = {**form, "name": "child", "description": "Helps."}
    parent = {
        **usual_form(),
        "managed_agents": {"child": child},
    }
    with pytest.raises(ValueError, match=rf"a managed agent of the form: .*{told}"):
        CodeAgent.from_dict(parent)


def test_what_a_form_may_not_choose_can_be_passed() -> None:
    form = {
        **usual_form(),
        "executor_type": "inprocess",
        "executor_kwargs": {"timeout_seconds": 5},
    }
    agent = CodeAgent.from_dict(form, executor_type="local", executor_kwargs={})
    assert (agent.executor_type, agent.executor_kwargs) == ("local", {})
    executor = LocalPythonExecutor()
    assert CodeAgent.from_dict(form, executor=executor).executor is executor


def test_secrets_of_an_executor_are_not_in_the_form() -> None:
    agent = CodeAgent([], OpenAIModel("m"), **QUIET)
    agent.executor_kwargs = {"api_key": "e2b-secret", "timeout_seconds": 5}
    assert agent.to_dict()["executor_kwargs"] == {"timeout_seconds": 5}
