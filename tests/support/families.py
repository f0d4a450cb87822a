"""Families of tests: those that are slow, and the skips of each in a few lines."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
SLOW = {
    "attacks": r"sandbox/attacks/|sandbox/test_copying\.py",
    "containers": r"test_docker|\[docker\b|-docker\b",
    "wasm": r"test_wasm|\[wasm\b|-wasm\b",
    "machines": r"test_machines|\[(e2b|modal|blaxel)\b|-(e2b|modal|blaxel)\b",
    "torch": r"test_transformers\.py|test_hub_files\.py::test_a_repository_for_transformers",
    "fuzz": r"test_frame_fuzz\.py|test_random_calls\.py|::test_(forged_messages|changed_frames)"
    r"|::test_(plain_data_comes_back|whatever_goes_in_comes_back|any_array_comes_back)",
    "costs": r"_in_proportion|test_kernel_codec_costs\.py",
    "soak": r"test_five_hundred|test_two_hundred|test_calls_that_wait_for_a_slow_tool",
}
"""Families that take minutes, by a pattern of their tests' ids."""


def family_of(test: str) -> str:
    """Returns the family of a test, by its id: one that is slow, or the folder that it lies in."""
    for family, pattern in SLOW.items():
        if re.search(pattern, test):
            return family
    folder, _, name = test.partition("::")[0].removeprefix("tests/").rpartition("/")
    return folder or name


def summary(skips: list[tuple[str, str]]) -> list[str]:
    """Returns a line for each family and reason, of pairs of a test's id and a reason."""
    counts = Counter((family_of(test), reason.removeprefix("Skipped: ")) for test, reason in skips)
    return [
        f"{count:>4} of {family}: {reason}"
        for (family, reason), count in sorted(counts.items(), key=lambda one: (one[0][0], -one[1]))
    ]
