"""What bounds the runs of an agent: limits, approval, policies, and what its model gets to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sanderling.memory import Compaction
from sanderling.runtime import Approval, Meter, Processed

from ._recall import RecallTool

if TYPE_CHECKING:
    from sanderling.memory import AgentMemory
    from sanderling.runtime import ApprovalPolicy, MessageProcessor, Policy, RunLimits
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

    def for_tree(self, limits: RunLimits | None) -> tuple[Policy, ...]:
        """Returns what holds for one run and those beneath it, the outermost first."""
        meter = () if limits is None else (Meter(limits),)
        approval = () if self.approve is None else (Approval(self.approve),)
        return (*meter, *approval, *self.policies)

    def for_run(self, memory: AgentMemory) -> tuple[Policy, ...]:
        """Returns what holds for one run alone."""
        processors = [
            one.begin(memory) if isinstance(one, Compaction) else one
            for one in self.history_processors
        ]
        return (Processed(processors),) if processors else ()


def with_memory(tools: dict[str, Tool], memory: AgentMemory) -> dict[str, Tool]:
    """Returns the tools of a run: what looks things up does so in its own memory."""
    recall = tools.get(RecallTool.name)
    if not isinstance(recall, RecallTool):
        return tools
    return {**tools, RecallTool.name: RecallTool(memory)}
