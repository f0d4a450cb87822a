from __future__ import annotations

from console.screen import Screen
from sanderling.console import Monitor
from sanderling.memory import ActionStep
from sanderling.messages import Timing, TokenUsage


def step(number: int, seconds: float, usage: TokenUsage | None) -> ActionStep:
    return ActionStep(number, Timing(100.0, 100.0 + seconds), token_usage=usage)


def test_tokens_are_added_up_and_the_number_is_that_of_the_step() -> None:
    screen = Screen()
    monitor = Monitor(logger=screen.logger)
    monitor.update_metrics(step(1, 0.27, TokenUsage(2069, 60)))
    monitor.update_metrics(step(5, 12, TokenUsage(2219, 7)))
    assert screen.lines == [
        "[Step 1: Duration 0.27 seconds| Input tokens: 2,069 | Output tokens: 60]",
        "[Step 5: Duration 12.00 seconds| Input tokens: 4,288 | Output tokens: 67]",
    ]
    assert monitor.get_total_token_counts() == TokenUsage(4288, 67)
    assert [round(seconds, 2) for seconds in monitor.step_durations] == [0.27, 12.0]


def test_what_is_not_known_is_not_printed() -> None:
    screen = Screen()
    monitor = Monitor(logger=screen.logger)
    monitor.update_metrics(step(1, 0.5, None))
    monitor.update_metrics(ActionStep())
    assert screen.lines == ["[Step 1: Duration 0.50 seconds]", "[Step]"]


def test_a_reset_starts_from_zero_and_no_logger_is_needed() -> None:
    monitor = Monitor()
    monitor.update_metrics(step(1, 0.5, TokenUsage(10, 2)))
    monitor.reset()
    assert monitor.get_total_token_counts() == TokenUsage(0, 0)
