"""Checks of what comes with a task, before anything is done with it."""

from __future__ import annotations

import errno
import keyword
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ._parts import listed

if TYPE_CHECKING:
    from sanderling.messages import ImageSource

_ELSEWHERE = ("http://", "https://", "data:")
_MAX_PATH = 200  # characters that an error shows
_NO_NAME = re.compile(r"\W+|^(?=\d)")


def images_there(images: object) -> list[ImageSource]:
    """Returns the images that come with a task.

    Raises:
        TypeError: They are no list.
        FileNotFoundError: One is the path of a file that is not there.
    """
    found: list[ImageSource] = listed("images", images)
    for place, image in enumerate(found):
        if isinstance(image, str | Path) and not str(image).startswith(_ELSEWHERE):
            path = str(image)
            if not os.path.exists(path):  # noqa: PTH110 - a path of its own raises what this does not
                what = f"images[{place}] is not there"
                raise FileNotFoundError(errno.ENOENT, what, path[:_MAX_PATH])
    return found


def check_variables(additional_args: object, tools: Collection[str]) -> None:
    """Checks that code can have values as variables.

    Args:
        additional_args: By name. What is no mapping is left to others.
        tools: The names that mean something to the code already.

    Raises:
        ValueError: A name is none, or is that of a tool.
    """
    for name in additional_args if isinstance(additional_args, Mapping) else ():
        taken = f"the key {name!r:.80} of additional_args"
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            proposal = _NO_NAME.sub("_", str(name)[:40]) or "value"
            proposal += "_" * keyword.iskeyword(proposal)
            raise ValueError(
                f"{taken} cannot be the name of a variable, which code knows the value by: give "
                f"it another one, such as {proposal!r}."
            )
        if name in tools or (name.startswith("__") and name.endswith("__")):
            what = "a tool, which code could not call then" if name in tools else "Python's own"
            raise ValueError(
                f"{taken} is the name of {what}: give the value another one, such as "
                f"{name.strip('_') + '_value'!r}."
            )
