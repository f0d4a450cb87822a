"""Sound that an agent gives back."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sanderling.errors import MissingExtraError

from ._base import AgentType, new_file

if TYPE_CHECKING:
    import numpy

_WEB = ("http://", "https://", "data:")


class AgentAudio(AgentType):
    """A piece of sound.

    Args:
        value: The path of a file; the bytes of one (WAV, FLAC, OGG, MP3); samples as a torch
            tensor, a numpy array or a list, of real numbers -1 to 1, for several channels of the
            shape channels × samples or samples × channels; or a pair of samplerate and samples.
        samplerate: Samples per second, where the value does not tell.

    Raises:
        TypeError: The value is nothing of the kind.
        ValueError: It is an address of the web, or bytes that are no sound.
    """

    media = "audio"

    def __init__(self, value: Any, samplerate: int = 16_000) -> None:
        self.samplerate = samplerate
        self._path: str | None = None
        self._samples: Any = None
        if isinstance(value, AgentAudio):
            self.samplerate, self._path, self._samples = (
                value.samplerate,
                value._path,
                value._samples,
            )
        elif isinstance(value, str) and value.startswith(_WEB):
            raise ValueError("sound is not fetched from the web here: download it first")
        elif isinstance(value, str | Path):
            self._path = str(value)
        elif isinstance(value, bytes):
            self._samples, self.samplerate = _read(io.BytesIO(value))
        elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int):
            self.samplerate, self._samples = value[0], _samples(value[1])
        else:
            self._samples = _samples(value)

    def to_raw(self) -> Any:
        """Returns the samples: the tensor or array that it was made of.

        Those of a file are a torch tensor where torch is installed, as in smolagents, and a numpy
        array otherwise.

        Raises:
            MissingExtraError: There is a file to be read, and the package for that is missing.
            ValueError: The file cannot be read.
        """
        if self._samples is None:
            array, self.samplerate = _read(self._path)
            self._samples = _as_tensor(array)
        return self._samples

    def to_array(self) -> numpy.ndarray[Any, Any]:
        """Returns the samples as a numpy array.

        Raises:
            MissingExtraError: A package that this needs is missing.
            ValueError: There is a file to be read, and it cannot be.
        """
        return _array(self.to_raw())

    def to_string(self) -> str:
        """Returns the path of a file with the sound: the one it was given by, or a WAV.

        That WAV is made when first asked for, and removed when the process ends.

        Raises:
            MissingExtraError: A file has to be written, and the package for that is missing.
        """
        if self._path is None:
            path = new_file(".wav")
            self._write(path)
            self._path = str(path)
        return self._path

    def _write(self, file: object) -> None:
        samples = self.to_array()
        if samples.ndim == 2 and samples.shape[0] < samples.shape[1]:
            samples = samples.T  # a file has a row for each moment
        _soundfile().write(file, samples, self.samplerate, format="WAV")

    def _repr_html_(self) -> str:
        """Shows a player in a notebook; nothing of the value but base64 gets into the markup."""
        file = io.BytesIO()
        self._write(file)
        data = base64.b64encode(file.getvalue()).decode("ascii")
        return f'<audio controls src="data:audio/wav;base64,{data}"></audio>'

    def __repr__(self) -> str:
        what = f"of {self._path!r}" if self._samples is None else f"at {self.samplerate} Hz"
        return f"<AgentAudio {what}>"


def _samples(value: Any) -> Any:
    """Returns a tensor or an array as it is, and a list as an array."""
    if hasattr(type(value), "__array__"):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _array(value)
    raise TypeError(
        f"a {type(value).__name__} is no sound: it takes a path, bytes, a tensor, an array, a list "
        "of samples, or a pair of samplerate and samples"
    )


def _array(value: Any) -> numpy.ndarray[Any, Any]:
    try:
        import numpy as np
    except ModuleNotFoundError as error:
        raise MissingExtraError("AgentAudio", "audio", "numpy") from error

    if hasattr(type(value), "detach"):
        value = value.detach().cpu()
    array = np.asarray(value)
    return array if array.dtype.kind in "iuf" else array.astype(np.float32)


def _read(file: object) -> tuple[Any, int]:
    try:
        samples, samplerate = _soundfile().read(file, dtype="float32")
    except RuntimeError as error:  # soundfile's own errors, which have no nearer base in common
        raise ValueError(f"this cannot be read as sound: {error}") from error
    return samples, samplerate


def _as_tensor(array: Any) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        return array
    return torch.from_numpy(array)


def _soundfile() -> Any:
    try:
        import soundfile  # type: ignore[import-untyped]  # it has no types
    except ModuleNotFoundError as error:
        raise MissingExtraError("AgentAudio", "audio", "soundfile") from error
    return soundfile
