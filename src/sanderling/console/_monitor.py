"""Adds up what the steps of a run cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.memory import PlanningStep
from sanderling.messages import TokenUsage

if TYPE_CHECKING:
    from sanderling.memory import ActionStep

    from ._logger import AgentLogger


class Monitor:
    """Sums tokens over steps, and prints the sums after each.

    Args:
        tracked_model: Whose steps they are; it is only kept.
        logger: Prints; nothing is printed without one.
    """

    def __init__(self, tracked_model: object = None, logger: AgentLogger | None = None) -> None:
        self.tracked_model = tracked_model
        self.logger = logger
        self.reset()

    def reset(self) -> None:
        """Starts from zero."""
        self._usage = TokenUsage(0, 0)
        self.step_durations: list[float] = []

    def get_total_token_counts(self) -> TokenUsage:
        """Returns the sum over the steps since the start."""
        return self._usage

    @property
    def total_input_token_count(self) -> int:
        """Tokens that went to the model since the start."""
        return self._usage.input_tokens

    @property
    def total_output_token_count(self) -> int:
        """Tokens that came from the model since the start."""
        return self._usage.output_tokens

    def update_metrics(self, step: ActionStep | PlanningStep, agent: str | None = None) -> None:
        """Adds a finished step, and prints its number, its duration and the tokens so far.

        Args:
            step: Of one run.
            agent: The name of the agent that took it, if it has one.
        """
        self.count(step)
        if self.logger is not None:
            self.logger.log(self._footer(step, self.logger, agent), style="dim")

    def count(self, step: ActionStep | PlanningStep) -> None:
        """Adds a finished step, and prints nothing."""
        if step.token_usage is not None:
            self._usage += step.token_usage
        if step.duration is not None:
            self.step_durations.append(step.duration)

    def _footer(
        self, step: ActionStep | PlanningStep, logger: AgentLogger, agent: str | None
    ) -> str:
        number = getattr(step, "step_number", None)
        if number is not None:
            what = logger.step_title(number)
        else:
            what = "Plan" if isinstance(step, PlanningStep) else "Step"
        footer = titled(what, agent)
        if step.duration is not None:
            footer += f": Duration {step.duration:.2f} seconds"
        if self._usage.total_tokens:
            footer += (
                f"| Input tokens: {self._usage.input_tokens:,}"
                f" | Output tokens: {self._usage.output_tokens:,}"
            )
        return f"[{footer}]"


def titled(title: str, agent: str | None) -> str:
    """Returns a title with the name of the agent: several may take turns on one screen."""
    return title if agent is None else f"{title} - {agent}"
