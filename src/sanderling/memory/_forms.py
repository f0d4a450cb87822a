"""The JSON forms of what steps hold, and the way back.

A form is written lightly, for people and dashboards, or exactly, to be loaded again: then a value
that JSON has no word for is written with the sandbox's codec, which rebuilds plain data only.
Nothing that is loaded is executed, unpickled or read as a path of this machine.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sanderling import sandbox
from sanderling.errors import AgentError, SandboxError
from sanderling.messages import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallStreamDelta,
    ImagePart,
    ImageSource,
    JSONObject,
    JSONValue,
    TextPart,
    Timing,
    TokenUsage,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from sanderling.sandbox.kernel import Blob

Write: TypeAlias = Callable[[object], JSONValue]
"""`json_form` or `exact_form`."""

WITH_FORM: list[Any] = [
    *(ChatMessage, ChatMessageStreamDelta, ChatMessageToolCall, ChatMessageToolCallStreamDelta),
    *(ImagePart, TextPart, Timing, TokenUsage, AgentError, SandboxError),
]
"""Classes of the library whose method ``dict`` returns the JSON form."""

_MAX_INT_BITS = 14_000  # Python refuses to write more than 4,300 decimal digits
_MAX_DEPTH = 120  # more than the codec's, so that all that comes out of a sandbox is written
_MAX_ITEMS = 4_000_000  # likewise


def json_form(value: object) -> JSONValue:
    """Returns the light JSON form of a value; one that has none is shown by `safe_repr`.

    What a value is, its class says: a method that it happens to have is never called, for the value
    may come out of a sandbox. What contains itself, is nested too deep or is one item too many is
    ``"..."`` there.
    """
    return _Light().of(value, 0)


class _Light:
    """Writes one light form, within bounds of depth and items."""

    def __init__(self) -> None:
        self._left = _MAX_ITEMS
        self._around: set[int] = set()  # what is being written, by id()

    def of(self, value: object, depth: int) -> JSONValue:
        """Returns the form of a value that is within so many others."""
        self._left -= 1
        if value is None or isinstance(value, bool | float | str):
            return value
        if isinstance(value, int):
            return value if value.bit_length() < _MAX_INT_BITS else hex(value)
        if sandbox.stays_on_host(value) or isinstance(value, type):
            return sandbox.safe_repr(value)
        if depth > _MAX_DEPTH or self._left < 0 or id(value) in self._around:
            return "..."
        self._around.add(id(value))
        try:
            return self._parts(value, depth + 1)
        finally:
            self._around.discard(id(value))

    def _parts(self, value: object, depth: int) -> JSONValue:
        if isinstance(value, dict):
            return {sandbox.safe_str(key): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item, depth) for item in value]
        if isinstance(value, sandbox.Record):
            return self.of(value.record_fields, depth)
        if isinstance(value, tuple(WITH_FORM)):
            form: JSONObject = value.dict()  # type: ignore[attr-defined]  # as the list says
            return self.of(form, depth)
        models = sys.modules.get(
            "pydantic.main"
        )  # where it is not loaded, no value is of its class
        if models is not None and isinstance(value, models.BaseModel):
            return self.of(type(value).model_dump(value), depth)
        if is_dataclass(value):
            names = [one.name for one in fields(value)]
            return {name: self.of(getattr(value, name, None), depth) for name in names}
        return sandbox.safe_repr(value)


def exact_form(value: object) -> JSONValue:
    """Returns a JSON form from which `value_of` rebuilds the value.

    Plain JSON stays as it is; tuples, sets, bytes, dates, big numbers, arrays, tables, images and
    sound are written as the sandbox's wire writes such. What has no form there leaves its class.
    """
    from ._sounds import Sounds

    data, blobs = sandbox.encode_on_host(value, Sounds())
    if data is value:
        return data  # type: ignore[return-value]  # the codec passes on only what is plain JSON
    return {"$": "value", "data": data, "blobs": [_text(blob) for blob in blobs]}  # type: ignore[dict-item]  # JSON by the codec's contract


def value_of(form: Any) -> Any:
    """Returns the value that `exact_form` wrote; a light form stays as it is.

    Raises:
        ValueError: The form is broken.
    """
    if not (isinstance(form, Mapping) and form.get("$") == "value"):
        return form
    from sanderling.sandbox.kernel import Frame

    from ._sounds import Sounds

    blobs = [memoryview(base64.b64decode(blob, validate=True)) for blob in form["blobs"]]
    return Frame("value", {"value": form["data"]}, blobs, tagged=True).value("value", Sounds())


def _text(blob: Blob) -> str:
    return base64.b64encode(blob).decode("ascii")


def image_forms(images: Sequence[ImageSource] | None, write: Write) -> JSONValue:
    """Returns images as URLs: those of the web as they are, all others as ``data:`` URLs.

    Raises:
        OSError: The file of an image cannot be read, and the form shall be exact.
        ValueError: It is no image, and the form shall be exact.
    """
    return None if images is None else [_image_form(image, write) for image in images]


def _image_form(image: ImageSource, write: Write) -> JSONObject:
    try:
        return ImagePart(image).dict()
    except (OSError, ValueError):
        if write is not json_form:
            raise
        return {"type": "image", "url": sandbox.safe_repr(image)}


def images_of(forms: Sequence[Mapping[str, Any]] | None) -> list[ImagePart] | None:
    """Returns the images that `image_forms` wrote.

    Raises:
        ValueError: An image is given by a path.
    """
    return None if forms is None else [ImagePart.from_dict(form) for form in forms]


class Form(NamedTuple):
    """How a field is written and read: ``field(metadata={FORM: Form(...)})`` declares it."""

    write: Callable[[Any, Write], JSONValue]
    read: Callable[[Any], Any]


def _data(read: Callable[[Any], Any]) -> Form:
    return Form(
        lambda value, _: json_form(value), lambda form: None if form is None else read(form)
    )


FORM: Final = "form"
"""The key of the metadata of a field that is not written and read as just any value."""

FORMAT_VERSION: Final = 1
"""The version of the forms of steps, effects, events and memories."""

AGENT_ERROR: Final = {FORM: _data(AgentError.from_dict)}
MESSAGE: Final = {FORM: _data(ChatMessage.from_dict)}
IMAGES: Final = {FORM: Form(image_forms, images_of)}
TIMING: Final = {FORM: _data(Timing.from_dict)}
TOKEN_USAGE: Final = {FORM: _data(TokenUsage.from_dict)}


def forms_of(kind: type[DataclassInstance]) -> dict[str, Form]:
    """Returns the form of each field of a dataclass."""
    return {field.name: field.metadata.get(FORM, _ANY) for field in fields(kind)}


def check_version(data: Mapping[str, Any], what: str) -> None:
    """Checks that this library can read a form.

    Args:
        data: The form.
        what: What it is of, for the error.

    Raises:
        ValueError: A newer version has written it.
    """
    version = data.get("version", FORMAT_VERSION)
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"this is no {what}: its version is {version!r:.80}")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"this {what} was saved by a newer Sanderling: its format is {version}, and this "
            f"version reads {FORMAT_VERSION}. Upgrade sanderling to load it."
        )


_ANY = Form(lambda value, write: write(value), value_of)
