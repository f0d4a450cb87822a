"""Tools that several scenarios use: one sync, one async and sometimes failing."""

from __future__ import annotations

import asyncio

from sanderling import tool


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: One of them.
        b: The other.
    """
    return a + b


@tool
async def greet(name: str) -> str:
    """Greets somebody.

    Args:
        name: Whom.
    """
    await asyncio.sleep(0)
    if name == "Nobody":
        raise LookupError("nobody is there")
    return f"Hello, {name}!"
