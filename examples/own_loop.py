"""The agent loop with nothing around it: model, action, observation, on one screen.

python examples/own_loop.py
"""

import time
from collections.abc import Generator
from typing import Any

from sanderling import (
    ActionStep,
    AgentMemory,
    ChatMessage,
    FinalAnswerStep,
    ScriptedModel,
    TaskStep,
)
from sanderling.loop import ActionOutput, CallTool, Effect, Generate, Now, RunState, react
from sanderling.runtime import Done, drive

TOOLS = {"double": lambda number: 2 * number, "add": lambda number: number + 1}
MODEL = ScriptedModel(["double 20", "add 40", "answer 41"])


def act(run: RunState, step: ActionStep) -> Generator[Effect, Any, ActionOutput]:
    """One step: the model is asked, its action carried out, and the observation kept for it."""
    reply: ChatMessage = yield Generate(run.memory.messages())
    step.model_output = reply.text
    name, number = reply.text.split()
    if name == "answer":
        return ActionOutput(int(number), is_final_answer=True)
    value = yield CallTool(f"call_{step.step_number}", name, {"number": int(number)})
    step.observations = f"{name} returned {value}"
    return ActionOutput(value, is_final_answer=False)


def handle(effect: Effect) -> Done:
    """Carries out what the loop asks for: here is all the I/O that there is."""
    match effect:
        case Generate():
            return Done(MODEL.generate(effect.messages))
        case CallTool():
            return Done(TOOLS[effect.name](**effect.arguments))
        case Now():
            return Done(time.time())
    return Done(None)  # nobody checks answers, and nobody is told of steps


memory = AgentMemory("Reply with a tool and a number, or with 'answer' and a number.")
memory.steps.append(TaskStep("What is twice 20, plus one?"))
run = RunState("What is twice 20, plus one?", memory, max_steps=5)
for event in drive(react(run, act, lambda run: run.memory.to_messages()), handle):
    if isinstance(event, ActionStep):
        print(f"{event.step_number}: {event.model_output!r} -> {event.observations!r}")
    elif isinstance(event, FinalAnswerStep):
        print("The answer:", event.output)
