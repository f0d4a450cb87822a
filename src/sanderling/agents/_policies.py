"""What bounds the runs of an agent: limits, approval, policies, and what its model gets to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sanderling._arguments import require_callables, require_list
from sanderling.memory import Compaction
from sanderling.runtime import Approval, HistoryPolicy

from ._recall_tool import RecallTool

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.runtime import ApprovalPolicy, MessageProcessor, Policy
    from sanderling.tools import Tool


@dataclass(frozen=True, slots=True)
class RunPolicies:
    """The settings; `MultiStepAgent` describes them."""

    approve: ApprovalPolicy | None
    policies: Sequence[Policy]
    history_processors: Sequence[Compaction | MessageProcessor]

    @property
    def compacts(self) -> bool:
        """Whether old outputs may be left out, so that the model needs a way to look them up."""
        return any(isinstance(processor, Compaction) for processor in self.history_processors)

    @property
    def inherited(self) -> tuple[Policy, ...]:
        """What holds for one run and those beneath it, the outermost first."""
        approval = () if self.approve is None else (Approval(self.approve),)
        return (*approval, *self.policies)

    def own(self, memory: AgentMemory) -> tuple[Policy, ...]:
        """Returns what holds for one run alone."""
        processors = [
            processor.begin(memory) if isinstance(processor, Compaction) else processor
            for processor in self.history_processors
        ]
        return (HistoryPolicy(processors),) if processors else ()


def run_policies(approve: object, policies: object, history_processors: object) -> RunPolicies:
    """Returns the settings, if they are what they have to be.

    Raises:
        TypeError: One is no list, or what it holds cannot be called.
    """
    processors = require_list("history_processors", history_processors)
    functions = [each for each in processors if not isinstance(each, Compaction)]
    require_callables("history_processors", functions)
    asked = require_callables("approve", None if approve is None else [approve])
    return RunPolicies(
        asked[0] if asked else None,
        tuple(require_callables("policies", policies)),
        tuple(processors),
    )


def with_memory(tools: dict[str, Tool], memory: AgentMemory) -> dict[str, Tool]:
    """Returns the tools of a run: what looks things up does so in its own memory."""
    recall = tools.get(RecallTool.name)
    if not isinstance(recall, RecallTool):
        return tools
    return {**tools, RecallTool.name: RecallTool(memory)}
