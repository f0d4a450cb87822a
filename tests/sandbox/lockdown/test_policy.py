"""The policy as data."""

import json
from dataclasses import fields

import pytest

from sanderling.sandbox.lockdown import Policy

POLICY = Policy(
    read=("/usr/lib", "/lib"),
    write=("/work", "/dev/null"),
    workdir="/work",
    memory_bytes=1 << 30,
    file_bytes=1 << 20,
    open_files=64,
    cpu_seconds=3,
    namespaces=True,
    workdir_bytes=1 << 24,
    workdir_files=9,
)


def test_it_comes_back_from_its_json_form() -> None:
    assert Policy.from_json(POLICY.to_json()) == POLICY
    assert set(json.loads(POLICY.to_json())) == {field.name for field in fields(Policy)}


@pytest.mark.parametrize("change", [{"more": 1}, {"read": None}])
def test_what_is_no_policy_is_refused(change: dict[str, object]) -> None:
    data = {**json.loads(POLICY.to_json()), **change}
    data = {key: value for key, value in data.items() if value is not None}

    with pytest.raises(ValueError, match="not a policy"):
        Policy.from_json(json.dumps(data))


def test_a_list_is_no_policy() -> None:
    with pytest.raises(ValueError, match="not a policy"):
        Policy.from_json("[]")
