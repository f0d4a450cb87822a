"""The parts of a message: text and images."""

from __future__ import annotations

import base64
import binascii
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

    from ._json import JSONObject

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


_LOADABLE = ("https://", "http://", "data:image/")


def encodable(text: str) -> str:
    r"""Returns a text that can be sent and saved: lone surrogates are written as ``\ud800``.

    They come from file names that are no UTF-8, and from texts cut within a character.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class TextPart(dict[str, Any]):
    """A piece of text within a message: ``{"type": "text", "text": ...}``; see `encodable`."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(type="text", text=encodable(text))

    @property
    def text(self) -> str:
        """The text."""
        text: str = self["text"]
        return text

    @property
    def type(self) -> str:
        """``"text"``."""
        return "text"

    def dict(self) -> JSONObject:
        """Returns the JSON form."""
        return {"type": "text", "text": self.text}

    def copy(self) -> TextPart:
        """Returns a part of its own."""
        part = TextPart.__new__(TextPart)
        part.update(self)  # its text is encodable already
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return TextPart, (self.text,)

    def __repr__(self) -> str:
        return f"TextPart({self.text!r})"


ImageSource: TypeAlias = "str | bytes | Path | Image | ImagePart"


class ImagePart(dict[str, Any]):
    """An image within a message: ``{"type": "image", "url": ...}``.

    ``part["image"]`` is what the image was made of; it is not among the keys, for not all of it has
    a JSON form.

    Args:
        image: A `PIL.Image.Image`, encoded bytes (PNG, JPEG, GIF, WebP), a path, an http(s) URL, or
            a ``data:`` URL. Files are read and pictures encoded when first needed, and only once.
    """

    __slots__ = ("_encoded", "_url", "image")

    def __init__(self, image: ImageSource) -> None:
        if isinstance(image, ImagePart):
            image = image.image
        super().__init__(type="image", url=None)  # the URL is made when it is asked for
        self.image: str | bytes | Path | Image = image
        self._encoded: tuple[str, str] | None = None
        self._url: str | None = None

    @property
    def type(self) -> str:
        """``"image"``."""
        return "image"

    @property
    def url(self) -> str:
        """The image as a URL: the web address it was given by, or a ``data:`` URL."""
        if isinstance(self.image, str) and self.image.startswith(("http://", "https://", "data:")):
            return self.image
        if self._url is None:
            media_type, data = self.base64()
            self._url = f"data:{media_type};base64,{data}"
        return self._url

    def base64(self) -> tuple[str, str]:
        """Returns the media type and the bytes in base64.

        Raises:
            ValueError: The source is a web address, or is not an image.
            FileNotFoundError: The path does not exist.
        """
        if self._encoded is None:
            data = self._read()
            self._encoded = (_media_type(data), base64.b64encode(data).decode("ascii"))
        return self._encoded

    def _read(self) -> bytes:
        image = self.image
        if isinstance(image, bytes):
            return image
        if isinstance(image, str) and image.startswith("data:"):
            try:
                return base64.b64decode(image.partition(",")[2], validate=True)
            except binascii.Error as error:
                raise ValueError(f"the data URL of an image is broken: {error}") from None
        if isinstance(image, str) and image.startswith(("http://", "https://")):
            raise ValueError(f"{image} is a web address; send its `url`, or download it first")
        if isinstance(image, str | Path):
            return Path(image).read_bytes()
        pillow = sys.modules.get("PIL.Image")  # where it is not loaded, no value is of its class
        if pillow is None or not isinstance(image, pillow.Image):
            raise ValueError(
                f"a value of the type {type(image).__name__} is not an image: "
                "pass a PIL image, bytes, a path or a URL"
            )
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        return buffer.getvalue()

    def dict(self) -> JSONObject:
        """Returns the JSON form: ``{"type": "image", "url": ...}``, bytes as a ``data:`` URL."""
        return {"type": "image", "url": self.url}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ImagePart:
        """Loads what `dict` wrote.

        Raises:
            ValueError: The image is given by a path: data must not choose a file of this machine.
            KeyError: There is no image.
        """
        part = cls(data["url"])
        check_loaded(part)
        return part

    def __getitem__(self, key: str) -> Any:
        match key:
            case "url":
                return self.url
            case "image":
                return self.image
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return key == "image" or super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the entry called `key`, or `default`."""
        return self[key] if key in ("type", "url", "image") else default

    def __iter__(self) -> Iterator[str]:
        return iter(("type", "url"))  # without it, dict(part) would copy what is not made yet

    def values(self) -> Any:
        """Returns the values of the JSON form."""
        return self.dict().values()

    def items(self) -> Any:
        """Returns the entries of the JSON form."""
        return self.dict().items()

    def copy(self) -> ImagePart:
        """Returns a part of its own."""
        return ImagePart(self.image)

    def __or__(self, other: Any) -> Any:
        return self.dict() | other

    def __reduce__(self) -> tuple[Any, ...]:
        return ImagePart, (self.image,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ImagePart):
            return self.image is other.image or self.url == other.url
        return isinstance(other, dict) and self.dict() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # as unhashable as any dict

    def __repr__(self) -> str:
        source = f"{len(self.image)} bytes" if isinstance(self.image, bytes) else self.image
        return f"ImagePart({str(source)[:60]})"


ContentPart: TypeAlias = TextPart | ImagePart


def _media_type(data: bytes) -> str:
    for signature, media_type in _SIGNATURES.items():
        if data.startswith(signature):
            return media_type
    raise ValueError("these bytes are not a PNG, JPEG, GIF or WebP image")


def check_loaded(part: ContentPart) -> None:
    """Checks a part that came from data instead of from the program.

    Raises:
        ValueError: It is an image that is given by a path.
    """
    if not isinstance(part, ImagePart):
        return
    if not (isinstance(part.image, str) and part.image.startswith(_LOADABLE)):
        raise ValueError(
            f"an image must be an http(s) or data: URL here, not {str(part.image)!r:.80}"
        )


def as_part(value: object) -> ContentPart:
    """Accepts a part, a text, or a part as OpenAI and smolagents write it: a dict with a type."""
    if isinstance(value, TextPart | ImagePart):
        return value
    if isinstance(value, str):
        return TextPart(value)
    if isinstance(value, Mapping):
        match value.get("type"):
            case "text" if isinstance(value.get("text"), str):
                return TextPart(value["text"])
            case "image" if "image" in value or "url" in value:
                return ImagePart(value["image"] if "image" in value else value["url"])
            case "image_url":
                inner = value.get("image_url")
                url = inner.get("url") if isinstance(inner, Mapping) else inner
                if isinstance(url, str):
                    return ImagePart(url)
    raise ValueError(
        f"not a content part: {value!r:.200}. Use a string, TextPart, ImagePart, "
        '{"type": "text", "text": ...} or {"type": "image", "image": ...}'
    )
