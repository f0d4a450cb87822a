"""Places where code runs, for cases that shall hold in each of them."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sanderling.sandbox import CodeResult, Interpreter, ToolRequest, create_interpreter
from support.sandbox import Tools, answer, run, specs

Form: TypeAlias = Literal["sync", "async"]


@dataclass(frozen=True)
class Place:
    """A place where code runs, and what can be expected of it.

    Attributes:
        name: The executor type.
        options: Settings that it needs here.
        walls: Whether the code runs apart from this process.
        wire: The descriptor on which the kernel speaks, where code can write to it.
        libraries: Whether NumPy and Pillow are there.
        restores: Whether a step that must be killed leaves the variables as they were before it.
        leftovers: What is left of interpreters that are not closed, as far as it can be seen.
    """

    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    walls: bool = True
    wire: int | None = None
    libraries: bool = True
    restores: bool = False
    leftovers: Callable[[], list[str]] = list

    def remains(self, before: list[str]) -> set[str]:
        """What was not there before, and is not gone within ten seconds."""
        deadline = time.monotonic() + 10
        while new := set(self.leftovers()).difference(before):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        return new

    def create(self, **options: Any) -> Interpreter:
        """Makes an interpreter; ``imports`` is all by default."""
        settings: dict[str, Any] = {**self.options, **options}
        settings.setdefault("additional_authorized_imports", ["*"])
        return create_interpreter(self.name, **settings)


@dataclass
class Driven:
    """An interpreter, and the form in which it is driven."""

    interpreter: Interpreter
    form: Form
    tools: Tools = dataclasses.field(default_factory=dict)

    def use(self, **tools: Callable[..., object]) -> None:
        """Puts these tools in the place of those before."""
        self.tools = tools
        self.interpreter.set_tools(specs(tools))

    def run(self, code: str) -> CodeResult:
        """Runs one step."""
        if self.form == "sync":
            return run(self.interpreter, code, self.tools)
        return asyncio.run(self.arun(code))

    async def arun(self, code: str) -> CodeResult:
        """Runs one step under asyncio; calls that come together are answered together."""
        result, answers = None, []
        async for event in self.interpreter.aexecute(code):
            if isinstance(event, ToolRequest):
                answers.append(
                    asyncio.create_task(
                        asyncio.to_thread(answer, self.interpreter, event, self.tools)
                    )
                )
            elif isinstance(event, CodeResult):
                result = event
        await asyncio.gather(*answers)
        if result is None:
            raise AssertionError("the step ended without a result")
        return result

    def value(self, code: str) -> Any:
        """Runs one step that must succeed; returns its value."""
        result = self.run(code)
        if result.error is not None:
            raise AssertionError(f"the step failed: {result.error}\n{result.logs}")
        return result.output

    def error(self, code: str) -> str:
        """Runs one step that must fail; returns what the model reads."""
        result = self.run(code)
        if result.error is None:
            raise AssertionError(f"the step did not fail: {result.output!r}")
        return str(result.error)
