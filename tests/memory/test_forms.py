"""The JSON forms of values."""

from __future__ import annotations

import json

from sanderling.memory import json_form


def test_what_is_nested_without_end_has_a_light_form() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    form = json.dumps(json_form(deep))
    assert form.endswith('"..."' + "]" * form.count("["))
    looped: dict[str, object] = {}
    looped.update(a=looped, b=[looped])
    twice: list[object] = []
    twice += [twice, twice]
    assert '"..."' in json.dumps(json_form([looped]))
    assert json_form(twice) == ["...", "..."]


def test_all_that_comes_out_of_a_sandbox_is_written() -> None:
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    assert json_form({"a": deep, "b": [*range(100_000)]}) == {"a": deep, "b": [*range(100_000)]}
