"""A measured figure, and the table that shows many of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value beside what it is compared with.

    Attributes:
        name: What was measured.
        value: The measurement.
        unit: Of `value` and `floor`.
        floor: The same thing done by the bare interpreter, in the same run.
        goal: The bound that `value` shall keep, or `ratio` where `goal_is_ratio`.
        at_least: Whether the goal is a lower bound.
        goal_is_ratio: Whether the goal bounds ``value / floor``.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    goal: float | None = None
    at_least: bool = False
    goal_is_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        """How `value` stands to `floor`."""
        return None if not self.floor else self.value / self.floor

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; `None` without a goal."""
        if self.goal is None:
            return None
        measured = (self.ratio or 0.0) if self.goal_is_ratio else self.value
        return measured >= self.goal if self.at_least else measured <= self.goal


def show(title: str, figures: Iterable[Figure]) -> bool:
    """Prints a table; returns whether all goals are met."""
    print(f"\n{title}")
    print(f"  {'':<44}{'measured':>12} {'floor':>10} {'ratio':>7}  goal")
    good = True
    for figure in figures:
        floor = "" if figure.floor is None else f"{figure.floor:.3g}"
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        goal = ""
        if figure.goal is not None:
            sign = "≥" if figure.at_least else "≤"
            what = "× floor" if figure.goal_is_ratio else figure.unit
            goal = f"{sign} {figure.goal:g} {what}  {'met' if figure.met else 'MISSED'}"
        good = good and figure.met is not False
        value = f"{figure.value:.3g} {figure.unit}"
        print(f"  {figure.name:<44}{value:>12} {floor:>10} {ratio:>7}  {goal}")
    return good
