"""Images that an agent gives back."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling.errors import MissingExtraError

from ._base import AgentType, new_file

if TYPE_CHECKING:
    import numpy
    from PIL.Image import Image as Picture
else:
    try:
        from PIL.Image import Image as Picture
    except ModuleNotFoundError:  # told by whoever makes one: the name can be imported all the same
        Picture = object

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""What bytes may be. Pillow knows more, such as PostScript, for which it starts a program."""

_CHANNELS = (1, 3, 4)
_WEB = ("http://", "https://", "data:")


class AgentImage(AgentType, Picture):
    """An image: a PIL image in every respect.

    Args:
        value: A PIL image, the path of a file, encoded bytes (PNG, JPEG, GIF, WebP, BMP), a numpy
            array or a torch tensor of height × width, or × channels (or channels first, if those
            are 1, 3 or 4), of whole numbers 0–255 or real ones 0–1.

    Raises:
        TypeError: The value is nothing of the kind.
        ValueError: It is, but no image; or an address of the web.
        OSError: The file cannot be read.
        MissingExtraError: Pillow is not installed.
    """

    media = "image"
    _path: str | None = None

    def __init__(self, value: Any) -> None:
        if Picture is object:
            raise MissingExtraError("AgentImage", "vision", "PIL")
        Picture.__init__(self)
        if isinstance(value, str | Path):
            self._path = str(value)
        elif isinstance(value, AgentImage):
            self._path = value._path
        image = _opened(value)
        self.__setstate__(image.__getstate__())
        self.info = image.info.copy()

    def to_raw(self) -> Picture:
        """Returns a plain PIL image, with pixels of its own."""
        return self.copy()

    def to_string(self) -> str:
        """Returns the path of a file with the image: the one it was read from, or a PNG.

        That PNG is made when first asked for, and removed when the process ends.
        """
        if self._path is None:
            path = new_file(".png")
            self.save(path, format="PNG")
            self._path = str(path)
        return self._path


def _opened(value: Any) -> Picture:
    from PIL import Image

    if isinstance(value, Picture):
        return value
    if isinstance(value, str) and value.startswith(_WEB):
        raise ValueError("an image is not fetched from the web here: download it first")
    if isinstance(value, str | Path):
        return _read(value, None)
    if isinstance(value, bytes):
        return _read(io.BytesIO(value), FORMATS)
    if hasattr(type(value), "__array__"):
        return Image.fromarray(_pixels(value))
    raise TypeError(
        f"a {type(value).__name__} is no image: it takes a PIL image, a path, bytes, an array or "
        "a tensor"
    )


def _read(file: Any, formats: tuple[str, ...] | None) -> Picture:
    from PIL import Image

    try:
        with Image.open(file, formats=formats) as image:
            image.load()
            return image
    except (SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"this cannot be read as an image: {error}") from error


def _pixels(value: Any) -> numpy.ndarray[Any, Any]:
    import numpy as np

    if hasattr(type(value), "detach"):
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.ndim == 3 and array.shape[0] in _CHANNELS and array.shape[2] not in _CHANNELS:
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in _CHANNELS):
        raise ValueError(f"an array of the shape {array.shape} is no image")
    if array.dtype.kind not in "buif":
        raise ValueError(f"an array of {array.dtype} is no image")
    if array.dtype.kind in "fb":
        array = np.nan_to_num(array.astype(np.float64)) * 255
    return np.ascontiguousarray(np.clip(np.rint(array), 0, 255).astype(np.uint8))
