"""Twenty runs of one agent at once, each with a memory and a sandbox of its own.

The model is a script here, so that the example needs no key and shows what is concurrent: a tool
that waits for a tenth of a second. Twenty runs take little longer than one.
"""

import asyncio
import time

from sanderling import CodeAgent, LogLevel, ScriptedModel, tool


@tool
async def look_up(number: int) -> int:
    """Looks something up, slowly.

    Args:
        number: What to look up.
    """
    await asyncio.sleep(0.1)
    return number**2


async def main() -> None:
    model = ScriptedModel(lambda _: "<code>\nfinal_answer(look_up(number))\n</code>")
    with CodeAgent([look_up], model, verbosity_level=LogLevel.OFF) as agent:
        start = time.perf_counter()
        runs = [agent.arun("Square it.", additional_args={"number": n}) for n in range(20)]
        answers = await asyncio.gather(*runs)
        print(answers, f"in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
