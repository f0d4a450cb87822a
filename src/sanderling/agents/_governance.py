"""What bounds the runs of an agent: limits, approval, policies, and what its model gets to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sanderling.memory import Compaction
from sanderling.runtime import Approval, Meter, Processed, RunLimits

from ._parts import functions, listed
from ._recall import RecallTool

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.runtime import ApprovalPolicy, MessageProcessor, Policy
    from sanderling.tools import Tool


@dataclass(frozen=True, slots=True)
class Governance:
    """The settings; `MultiStepAgent` describes them."""

    approve: ApprovalPolicy | None
    policies: Sequence[Policy]
    history_processors: Sequence[Compaction | MessageProcessor]

    @property
    def forgets(self) -> bool:
        """Whether old outputs may be left out, so that the model needs a way to look them up."""
        return any(isinstance(one, Compaction) for one in self.history_processors)

    def for_tree(self, meter: Meter | None) -> tuple[Policy, ...]:
        """Returns what holds for one run and those beneath it, the outermost first."""
        limits = () if meter is None else (meter,)
        approval = () if self.approve is None else (Approval(self.approve),)
        return (*limits, *approval, *self.policies)

    def for_run(self, memory: AgentMemory) -> tuple[Policy, ...]:
        """Returns what holds for one run alone."""
        processors = [
            one.begin(memory) if isinstance(one, Compaction) else one
            for one in self.history_processors
        ]
        return (Processed(processors),) if processors else ()


def governance(approve: object, policies: object, history_processors: object) -> Governance:
    """Returns the settings, if they are what they have to be.

    Raises:
        TypeError: One is no list, or what it holds cannot be called.
    """
    processors = listed("history_processors", history_processors)
    functions("history_processors", [one for one in processors if not isinstance(one, Compaction)])
    asked = functions("approve", None if approve is None else [approve])
    return Governance(
        asked[0] if asked else None, tuple(functions("policies", policies)), tuple(processors)
    )


def as_limits(limits: object) -> RunLimits | None:
    """Returns limits, if they are some.

    Raises:
        TypeError: They are none.
    """
    if limits is not None and not isinstance(limits, RunLimits):
        raise TypeError(f"limits must be a RunLimits, not a {type(limits).__name__}")
    return limits


def with_memory(tools: dict[str, Tool], memory: AgentMemory) -> dict[str, Tool]:
    """Returns the tools of a run: what looks things up does so in its own memory."""
    recall = tools.get(RecallTool.name)
    if not isinstance(recall, RecallTool):
        return tools
    return {**tools, RecallTool.name: RecallTool(memory)}
