from __future__ import annotations

import asyncio
import contextvars
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from sanderling.tools import BaseTool, Tool

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


class Where(Tool):
    """Tells the thread and the context that it runs in."""

    name = "where"
    description = "Tells where it runs."
    inputs = {}
    output_type = "any"

    def forward(self) -> tuple[int, str]:
        return threading.get_ident(), TENANT.get()


class AsyncWhere(Where):
    name = "async_where"

    async def forward(self) -> tuple[int, str]:  # type: ignore[override]  # the async twin
        await asyncio.sleep(0)
        return threading.get_ident(), TENANT.get()


class BoundWhere(Where):
    thread_bound = True


class Join(Tool):
    name = "join"
    description = "Joins texts."
    inputs = {
        "parts": {"type": "array", "description": "The texts."},
        "by": {"type": "string", "description": "Put between.", "nullable": True},
    }
    output_type = "string"

    def forward(self, parts: list[str], by: str = ", ") -> str:
        return by.join(parts)


class Slow(Tool):
    """Counts how often it is set up."""

    name = "slow"
    description = "Needs a set-up."
    inputs = {}
    output_type = "integer"

    def __init__(self, barrier: threading.Barrier | None = None, failures: int = 0) -> None:
        super().__init__()
        self.barrier = barrier
        self.failures = failures
        self.setups = 0

    def setup(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("not yet")
        self.setups += 1

    def forward(self) -> int:
        return self.setups


def test_is_called_like_a_function() -> None:
    join = Join()
    assert isinstance(join, BaseTool)
    assert join(["a", "b"]) == "a, b"
    assert join(["a", "b"], "-") == "a-b"
    assert join(parts=["a"], by="-") == "a"
    assert join({"parts": ["a", "b"], "by": "+"}) == "a+b"


def test_a_lone_dict_of_something_else_is_an_argument() -> None:
    class Keys(Tool):
        name = "keys"
        description = "Lists keys."
        inputs = {"data": {"type": "object", "description": "Any dict."}}
        output_type = "array"

        def forward(self, data: dict[str, Any]) -> list[str]:
            return list(data)

    keys = Keys()
    assert keys({"a": 1}) == ["a"]
    assert keys({}) == []
    assert keys({"data": {"a": 1}}) == ["a"]
    assert keys.bind(({"a": 1},), {}) == {"data": {"a": 1}}


def test_can_check_the_arguments_of_a_plain_call() -> None:
    assert Join()(["a"], sanitize_inputs_outputs=True) == "a"
    with pytest.raises(TypeError, match="must be a list"):
        Join()("a", sanitize_inputs_outputs=True)


def test_a_type_hint_refines_what_was_declared() -> None:
    schema: Any = Join().to_json_schema()
    assert schema["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "parts": {"type": "array", "items": {"type": "string"}, "description": "The texts."},
            "by": {"type": "string", "description": "Put between.", "default": ", "},
        },
        "required": ["parts"],
    }
    with pytest.raises(TypeError, match=r"parts\[1\]"):
        Join().call({"parts": ["a", 1]})


def test_what_is_declared_wins_over_a_hint() -> None:
    @dataclass
    class Text:
        text: str

    class Contrary(Tool):
        name = "contrary"
        description = "Declares a string, hints at an object."
        inputs = {"x": {"type": "string", "description": "The x."}}
        output_type = "any"

        def forward(self, x: Any) -> Any:
            return x

    Contrary.forward.__annotations__["x"] = Text
    assert Contrary().call({"x": "a"}) == "a"
    with pytest.raises(TypeError, match="must be a string"):
        Contrary().call({"x": {"text": "a"}})


def test_json_schema_gives_every_type_a_form_that_servers_take() -> None:
    class Media(Tool):
        name = "media"
        description = "Takes everything."
        inputs = {
            "image": {"type": "image", "description": "An image."},
            "audio": {"type": "audio", "description": "A sound."},
            "anything": {"type": "any", "description": "Anything."},
            "items": {"type": "array", "description": "A list."},
            "limit": {"type": "number", "description": "A bound.", "nullable": True},
        }
        output_type = "null"

        def forward(self, image, audio, anything, items, limit=float("inf")): ...  # type: ignore[no-untyped-def]  # as older tools are

    schema: Any = Media().to_json_schema()
    assert schema["function"]["parameters"]["properties"] == {
        "image": {"type": "string", "description": "An image."},
        "audio": {"type": "string", "description": "A sound."},
        "anything": {"description": "Anything."},
        "items": {"type": "array", "items": {}, "description": "A list."},
        "limit": {"type": "number", "description": "A bound."},
    }


def test_the_thread_of_a_call() -> None:
    here = threading.get_ident()
    TENANT.set("acme")
    thread, tenant = _pair(Where().call({}))
    assert (thread, tenant) == (here, "acme")
    thread, tenant = _pair(AsyncWhere().call({}))
    assert thread != here
    assert tenant == "acme"

    async def main() -> None:
        thread, tenant = _pair(await Where().acall({}))
        assert thread != here
        assert tenant == "acme"
        assert _pair(await AsyncWhere().acall({})) == (here, "acme")
        assert _pair(await BoundWhere().acall({})) == (here, "acme")

    asyncio.run(main())


def test_an_async_tool_can_be_awaited() -> None:
    assert AsyncWhere().is_async
    assert not Where().is_async

    async def main() -> object:
        return await AsyncWhere()()

    assert _pair(asyncio.run(main()))[0] == threading.get_ident()


def test_an_async_tool_works_where_a_loop_is_already_running() -> None:
    async def main() -> object:
        return AsyncWhere().call({})

    assert _pair(asyncio.run(main()))[0] != threading.get_ident()


def test_checked_arguments_can_be_run_without_a_second_check() -> None:
    join = Join()
    checked = join.validate_arguments({"parts": ["a", "b"], "by": None})
    assert checked == {"parts": ["a", "b"], "by": ", "}
    assert join.validate_arguments(checked) == checked
    assert join.invoke(checked) == "a, b"
    assert asyncio.run(join.ainvoke(checked)) == "a, b"


def test_is_set_up_once_before_the_first_call() -> None:
    slow = Slow()
    assert (slow.setups, slow.is_initialized) == (0, False)
    assert [slow(), slow.call({}), asyncio.run(slow.acall({}))] == [1, 1, 1]
    assert slow.is_initialized


def test_is_set_up_once_by_many_threads() -> None:
    class Gated(Slow):
        def setup(self) -> None:
            assert self.barrier is not None
            self.barrier.wait(10)
            super().setup()

    slow = Gated(threading.Barrier(2))
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(slow.call, {}) for _ in range(8)]
        assert slow.barrier is not None
        slow.barrier.wait(10)
        assert [call.result() for call in calls] == [1] * 8


def test_a_set_up_that_fails_is_tried_again() -> None:
    slow = Slow(failures=1)
    with pytest.raises(ConnectionError, match="not yet"):
        slow.call({})
    assert slow.call({}) == 1


def test_the_set_up_of_an_async_tool_may_use_the_loop() -> None:
    class Queue(Slow):
        def setup(self) -> None:
            self.loop = asyncio.get_running_loop()

        async def forward(self) -> int:  # type: ignore[override]  # the async twin
            assert asyncio.get_running_loop() is self.loop
            return 1

    assert Queue().call({}) == 1
    assert asyncio.run(Queue().acall({})) == 1


def test_a_copy_is_set_up_on_its_own() -> None:
    slow = Slow()
    twin = copy.deepcopy(slow)
    slow.call({})
    assert not twin.is_initialized
    assert twin.call({}) == 1


def test_errors_of_the_tool_are_its_own() -> None:
    class Broken(Where):
        def forward(self) -> Any:
            raise LookupError("no such thing")

    class AsyncBroken(Where):
        async def forward(self) -> Any:  # type: ignore[override]  # the async twin
            raise LookupError("no such thing")

    for tool in (Broken(), AsyncBroken()):
        with pytest.raises(LookupError, match="no such thing"):
            tool.call({})
        with pytest.raises(LookupError, match="no such thing"):
            asyncio.run(tool.acall({}))


def test_many_blocking_calls_wait_together() -> None:
    barrier = threading.Barrier(60)

    class Meet(Where):
        def forward(self) -> Any:
            return barrier.wait(20)

    async def main() -> list[object]:
        return await asyncio.gather(*(Meet().acall({}) for _ in range(60)))

    assert sorted(map(str, asyncio.run(main()))) == sorted(map(str, range(60)))


def _pair(value: object) -> tuple[int, str]:
    assert isinstance(value, tuple)
    thread, tenant = value
    return thread, tenant
