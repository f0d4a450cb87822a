"""Every known attack through the real interpreter, judged by what became of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.attacks.case import WALLS, Case
from sandbox.attacks.corpus import ELSEWHERE, ROWS, TECHNIQUES
from sandbox.attacks.field import WITHOUT_NAMESPACES, Fields, stopped_by
from sandbox.attacks.review import REVIEW
from sandbox.attacks.suite import (
    APART,
    CASES,
    PROGRAMS,
    WHOLE,
    techniques_tried,
    walls_to_try,
)
from sanderling.sandbox.lockdown import LockdownError
from sanderling.sandbox.lockdown._landlock import abi
from support.locked import why_not_as_nobody

TESTS = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)
_SIGNALS_ABI = 6  # from here on Landlock keeps signals and abstract sockets inside


def _named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_what_comes_of_an_attack(attacked: Fields, own_root: bool, case: Case) -> None:
    if case.layers == ("namespaces",) and not own_root:
        pytest.skip("this machine gives no namespaces, and nothing else stops it")
    tried = attacked.try_case(case)
    if not tried:
        pytest.skip(f"nobody here has {case.needs}")

    # What remains is contained like all else: it is told apart because it should not work at all.
    expected = "contained" if case.end == "remains" else case.end
    for user, outcomes in tried.items():
        assert (outcomes["all"].end, user) == (expected, user), outcomes["all"].why
        assert case.told in outcomes["all"].why


@pytest.mark.parametrize("case", APART, ids=_named)
def test_which_layers_stop_it(attacked: Fields, own_root: bool, case: Case) -> None:
    if not own_root or _landlock_abi() < _SIGNALS_ABI:
        pytest.skip("the figures are those of a machine with all layers")
    tried = attacked.try_case(case, walls_to_try(case))
    if not tried:
        pytest.skip(f"nobody here has {case.needs}")
    if any(outcomes["process"].end == "absent" for outcomes in tried.values()):
        pytest.skip("this kernel does not have what it attacks")

    for user, outcomes in tried.items():
        broken = {walls: tried.why for walls, tried in outcomes.items() if tried.end == "broken"}
        assert (user, broken) == (user, {})
        if case.layers != ("namespaces",):
            assert outcomes[WITHOUT_NAMESPACES].end == case.end, outcomes[WITHOUT_NAMESPACES].why
    measured = [stopped_by(outcomes) for outcomes in tried.values()]
    # One whom the process alone stops needs no layer, whichever there are.
    measured = [layers for layers in measured if layers != {"process"}] or [{"process"}]
    if measured == [{"process"}] != [set(case.layers)] and os.getuid() != 0:
        pytest.skip("only root may do this at all")
    stopping = set.intersection(*measured)
    assert stopping >= set(case.layers)
    if len(tried) > 1:  # root without capabilities is stopped by more, so one user says too much
        assert stopping == set(case.layers)


def test_the_attacks_ran_without_privileges_too(attacked: Fields) -> None:
    reason = why_not_as_nobody()
    if os.getuid() == 0 and reason is not None:
        pytest.skip(reason)
    assert "nobody" in attacked.users or os.getuid() != 0


def test_every_technique_and_row_is_tried_or_says_why_not() -> None:
    rows = {of for case in CASES for of in case.of} - TECHNIQUES.keys()

    assert list(TECHNIQUES) == [str(number) for number in range(1, 149)]
    assert techniques_tried() == TECHNIQUES.keys() - ELSEWHERE.keys()
    assert rows == ROWS.keys()


def test_all_that_the_review_tried_is_tried_still() -> None:
    names = {case.name: case.of for case in CASES}
    places = [(technique, place) for _, technique, places in REVIEW for place in places]
    assert len(REVIEW) == 128
    for technique, place in (*places, *PROGRAMS.items()):
        assert technique in TECHNIQUES
        file, _, function = place.partition("::")
        if function:
            assert f"\ndef {function}(" in (TESTS / file).read_text(), place
        else:
            assert place in names


@pytest.mark.parametrize("case", WHOLE, ids=_named)
def test_what_comes_of_an_attack_without_namespaces(attacked: Fields, case: Case) -> None:
    tried = attacked.try_without_namespaces(case)
    if not tried:
        pytest.skip(f"nobody here has {case.needs}")
    expected = "contained" if case.end == "remains" else case.end
    for user, outcomes in tried.items():
        assert (outcomes["all"].end, user) == (expected, user), outcomes["all"].why
        assert case.told in outcomes["all"].why


def test_cases_have_names_of_their_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_what_can_be_tried_apart_is_stopped_by_a_wall() -> None:
    assert all(
        set(case.layers) <= {"process", "together", *WALLS} and case.layers for case in APART
    )


def _landlock_abi() -> int:
    try:
        return abi()
    except LockdownError:
        return 0
