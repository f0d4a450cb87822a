"""Adds up what the steps of a run cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.messages import TokenUsage

if TYPE_CHECKING:
    from sanderling.memory import ActionStep

    from ._logger import AgentLogger


class Monitor:
    """Sums tokens over steps, and prints the sums after each.

    Args:
        model: Accepted so that code written for smolagents keeps working.
        logger: Prints; nothing is printed without one.
    """

    def __init__(self, model: object = None, logger: AgentLogger | None = None) -> None:
        del model
        self._logger = logger
        self.reset()

    def reset(self) -> None:
        """Starts from zero."""
        self._usage = TokenUsage(0, 0)

    def get_total_token_counts(self) -> TokenUsage:
        """Returns the sum over the steps since the start."""
        return self._usage

    def update_metrics(self, step: ActionStep) -> None:
        """Adds a finished step, and prints its number, its duration and the tokens so far."""
        if step.token_usage is not None:
            self._usage += step.token_usage
        if self._logger is not None:
            self._logger.log(self._footer(step), style="dim")

    def _footer(self, step: ActionStep) -> str:
        footer = "Step" if step.step_number is None else f"Step {step.step_number}"
        if step.duration is not None:
            footer += f": Duration {step.duration:.2f} seconds"
        if self._usage.total_tokens:
            footer += (
                f"| Input tokens: {self._usage.input_tokens:,}"
                f" | Output tokens: {self._usage.output_tokens:,}"
            )
        return f"[{footer}]"
