"""Runs the attack suite and prints who was stopped by what.

    .venv/bin/python tests/sandbox/attacks/figures.py

The first two tables are those of ``docs/security.md``. The third is measured: each attack that may
be tried with walls missing, and the layers that stopped it alone.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from sandbox.attacks.field import Fields, fields, stopped_by
from sandbox.attacks.suite import APART, CASES, markdown, walls_to_try


def main() -> None:
    """Prints the figures; fails if an attack got through."""
    began = time.monotonic()
    print(markdown())
    with fields() as attacked:
        wrong = _whole(attacked)
        _apart(attacked)
    print(f"\n{time.monotonic() - began:.0f} s")
    sys.exit(f"{wrong} attacks did not end as they must" if wrong else 0)


def _whole(attacked: Fields) -> int:
    ends: dict[str, Counter[str]] = {user: Counter() for user in attacked.users}
    wrong = 0
    for case in CASES:
        expected = "contained" if case.end == "remains" else case.end
        for user, outcomes in attacked.try_case(case).items():
            ends[user][outcomes["all"].end] += 1
            if outcomes["all"].end != expected:
                wrong += 1
                print(f"\n{case.name} ({user}): {outcomes['all'].end}: {outcomes['all'].why}")
    print("\nAs run, behind all walls:")
    for user, counted in ends.items():
        told = ", ".join(f"{count} {end}" for end, count in counted.most_common())
        print(f"  {user}: {counted.total()} cases: {told}")
    return wrong


def _apart(attacked: Fields) -> None:
    users = list(attacked.users)
    print("\n| Attack | " + " | ".join(f"stopped by (as {user})" for user in users) + " |")
    print("|---" * (1 + len(users)) + "|")
    for case in APART:
        tried = attacked.try_case(case, walls_to_try(case))
        cells = [
            ", ".join(sorted(stopped_by(tried[user]))) if user in tried else "" for user in users
        ]
        print(f"| {case.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
