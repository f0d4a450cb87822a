"""The exact JSON form of sound: its samples, which the sandbox's codec writes as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling.errors import MissingExtraError
from sanderling.sandbox.kernel import CodecError, Extension, SandboxValue
from sanderling.tools.agent_types import AgentAudio

if TYPE_CHECKING:
    from sanderling.sandbox.kernel import Decoder, Encoder, Message


def _read(decoder: Decoder, value: Message, depth: int) -> object:
    samples, rate = decoder.value(value["samples"], depth), value["rate"]
    if isinstance(samples, SandboxValue):  # numpy is not installed: it says so
        return samples
    if not hasattr(type(samples), "__array__") or type(rate) is not int:
        raise CodecError("no sound")
    return AgentAudio(samples, rate)


class Sounds(Extension):
    """Writes and reads `AgentAudio`. What is read is samples, never a file or its bytes."""

    readers = {"audio": _read}

    def write(self, encoder: Encoder, value: object) -> object:
        """Returns the form of a sound; None for one whose file cannot be read, or anything else."""
        if not isinstance(value, AgentAudio):
            return None
        sound = AgentAudio(value)  # reading a file leaves the user's object as it was
        try:
            samples = sound.to_array()
        except (MissingExtraError, ValueError):
            return None
        return {"$": "audio", "rate": sound.samplerate, "samples": encoder.value(samples, 1)}
