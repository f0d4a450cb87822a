"""What an agent gives back, with the methods that smolagents gave it: text, images and sound.

A text that a model or a tool returns is never taken for the path of a file. To say that a path may
be read, make the object: ``AgentImage(path)``, ``AgentAudio(path)``.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal, TypeAlias

Media: TypeAlias = Literal["image", "audio"]

# Recognised by name: nobody shall import these packages to ask what a value is.
_MEDIA: dict[tuple[str, str], Media] = {("PIL", "Image"): "image", ("torch", "Tensor"): "audio"}
_numbers = itertools.count(1)


class AgentType(ABC):
    """Base of `AgentText`, `AgentImage` and `AgentAudio`."""

    __slots__ = ()

    media: Media | None = None
    """What it shows or sounds; text is neither."""

    @abstractmethod
    def to_raw(self) -> Any:
        """Returns the value inside."""

    @abstractmethod
    def to_string(self) -> str:
        """Returns the text, or the path of a file that holds the value."""


class AgentText(str, AgentType):
    """A text: a `str` in every respect."""

    __slots__ = ()

    def to_raw(self) -> str:
        """Returns the text."""
        return str(self)

    def to_string(self) -> str:
        """Returns the text."""
        return str(self)


def media_of(value: object) -> Media | None:
    """Returns what a value is by itself: an image, audio, or neither.

    A PIL image is an image, a torch tensor is audio. Neither package need be installed to ask.
    """
    if isinstance(value, AgentType):
        return value.media
    for kind in type(value).__mro__:
        found = _MEDIA.get((kind.__module__.partition(".")[0], kind.__name__))
        if found is not None:
            return found
    return None


def handle_agent_input_types(*args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments with the values inside in the place of `AgentType`s."""
    return [as_raw(arg) for arg in args], {name: as_raw(arg) for name, arg in kwargs.items()}


def as_raw(value: Any) -> Any:
    """Returns the value inside an `AgentType`, and any other value as it is."""
    return value.to_raw() if isinstance(value, AgentType) else value


def handle_agent_output_types(output: Any, output_type: str | None = None) -> Any:
    """Returns a value as the `AgentType` that fits it, where one does.

    Args:
        output: Anything. A text stays text whatever the type: it is not read as a path, because a
            model may have written it.
        output_type: The type that a tool declares. ``"image"`` and ``"audio"`` say what bytes and
            arrays are; otherwise the value itself tells.

    Raises:
        TypeError: It shall be an image or audio, and is no such thing.
        ValueError: It is one that cannot be read.
        MissingExtraError: Reading it takes a package that is not installed.
    """
    if type(output) is str:
        return AgentText(output)
    if output is None or isinstance(output, AgentType | str | Path):
        return output
    media = output_type if output_type in ("image", "audio") else media_of(output)
    if media == "image":
        from ._image import AgentImage

        return AgentImage(output)
    if media == "audio":
        from ._audio import AgentAudio

        return AgentAudio(output)
    return output


def new_file(suffix: str) -> Path:
    """Returns the path of a file that is not there yet; it is removed when this process ends."""
    return _folder(os.getpid()) / f"{next(_numbers)}{suffix}"


@functools.cache
def _folder(owner: int) -> Path:
    import shutil  # both bring a dozen modules, which most programs never need
    import tempfile

    folder = tempfile.mkdtemp(prefix="sanderling_made_")

    def remove() -> None:
        if os.getpid() == owner:  # a fork of that process runs this too
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)
