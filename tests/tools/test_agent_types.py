"""What agents give back: text, images and sound."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import pickle
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sanderling import AgentAudio, AgentImage, AgentText, AgentType, Tool, tool
from sanderling.tools.agent_types import (
    handle_agent_input_types,
    handle_agent_output_types,
    media_of,
)

RED = Image.new("RGB", (7, 5), "red")
SOUND = np.sin(np.linspace(0, 60, 800, dtype=np.float32))


def png(image: Image.Image = RED) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def same(one: Image.Image, other: Image.Image) -> bool:
    return (one.size, one.mode, one.tobytes()) == (other.size, other.mode, other.tobytes())


def test_a_text_is_a_str_in_every_respect() -> None:
    text = AgentText("[bold]42")
    assert text == "[bold]42"
    assert isinstance(text, str)
    assert {"[bold]42": 1}[text] == 1
    assert json.dumps(text) == '"[bold]42"'
    assert repr(text) == "'[bold]42'"
    assert type(text.to_raw()) is type(text.to_string()) is type(str(text)) is str
    assert copy.deepcopy(text) == pickle.loads(pickle.dumps(text)) == text


@pytest.mark.parametrize(
    "value",
    [
        RED,
        png(),
        AgentImage(RED),
        np.asarray(RED),
        np.moveaxis(np.asarray(RED), 2, 0),
        np.asarray(RED) / 255,
        np.asarray(RED).astype(np.int64),
    ],
    ids=["pil", "bytes", "itself", "array", "channels first", "real numbers", "wide numbers"],
)
def test_an_image_comes_from_whatever_holds_one(value: Any) -> None:
    image = AgentImage(value)
    assert isinstance(image, Image.Image)
    assert same(image, RED)
    assert type(image.to_raw()) is Image.Image
    assert same(image.to_raw(), RED)
    assert image.getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr", "LAB", "I", "F"])
def test_an_image_may_be_of_any_mode(mode: str) -> None:
    image = Image.new(mode, (3, 2), 1)
    assert same(AgentImage(image), image)
    assert same(AgentImage(image).to_raw(), image)
    if mode == "P":
        image.putpalette([9, 8, 7, 1, 2, 3])
        assert AgentImage(image).convert("RGB").getpixel((0, 0)) == (1, 2, 3)
    assert AgentImage(Image.new(mode, (0, 0))).size == (0, 0)


def test_an_image_of_a_tensor() -> None:
    torch = pytest.importorskip("torch", reason="torch is a download of its own")
    assert same(AgentImage(torch.tensor(np.asarray(RED) / 255, requires_grad=True)), RED)


@pytest.mark.parametrize(
    ("array", "mode"),
    [
        (np.zeros((4, 5)), "L"),
        (np.zeros((4, 5), bool), "L"),
        (np.zeros((4, 5, 1)), "L"),
        (np.zeros((1, 4, 5)), "L"),
        (np.zeros((4, 5, 4), np.uint8), "RGBA"),
    ],
    ids=str,
)
def test_arrays_of_other_shapes(array: Any, mode: str) -> None:
    image = AgentImage(array)
    assert (image.mode, image.size) == (mode, (5, 4))


def test_numbers_that_are_out_of_range_are_cut() -> None:
    assert list(AgentImage(np.array([[-1.0, 0.5, 7.0, np.nan]])).tobytes()) == [0, 128, 255, 0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, TypeError),
        (None, TypeError),
        (b"no image", OSError),
        (png()[:45], OSError),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", OSError),
        (np.zeros(3), ValueError),
        (np.zeros((2, 3, 9)), ValueError),
        (np.array([["a"]]), ValueError),
        ("https://example.org/cat.png", ValueError),
        ("data:image/png;base64,", ValueError),
        ("no/such/file.png", OSError),
    ],
    ids=str,
)
def test_what_is_no_image_is_refused(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        AgentImage(value)


def test_an_image_of_a_file_keeps_its_path(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    path.write_bytes(png())
    assert AgentImage(path).to_string() == AgentImage(str(path)).to_string() == str(path)
    assert AgentImage(AgentImage(path)).to_string() == str(path)
    assert same(AgentImage(path), RED)


def test_any_other_image_is_saved_when_its_path_is_wanted() -> None:
    image = AgentImage(RED)
    path = image.to_string()
    assert path.endswith(".png")
    assert image.to_string() == path
    assert AgentImage(RED).to_string() != path
    with Image.open(path) as saved:
        assert same(saved, RED)


def test_files_go_when_the_process_ends(run_python: Any) -> None:
    path = run_python(
        "from PIL import Image; from sanderling import AgentImage; "
        "print(AgentImage(Image.new('L', (1, 1))).to_string())"
    ).strip()
    assert not Path(path).parent.exists()


def test_a_fork_that_ends_leaves_the_files_of_its_parent(run_python: Any) -> None:
    told = run_python(
        "import os, sys; from PIL import Image; from sanderling import AgentImage\n"
        "def path(shade): return AgentImage(Image.new('L', (1, 1), shade)).to_string()\n"
        "mine = path(1)\n"
        "if not (child := os.fork()): sys.exit(path(2) == mine)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.path.exists(mine))"
    )
    assert told.split() == ["0", "True"]


def test_without_pillow_the_names_are_there_and_say_what_is_missing(run_python: Any) -> None:
    told = run_python(
        """
import sys
sys.modules["PIL"] = None
from sanderling.agent_types import *
assert handle_agent_output_types("text") == AgentText("text")
try:
    AgentImage("cat.png")
except ImportError as error:
    print(error)
"""
    )
    assert "pip install 'sanderling[vision]'" in told


def test_a_changed_image_is_what_is_given_back() -> None:
    image = AgentImage(RED)
    image.putpixel((0, 0), (0, 0, 255))
    assert image.to_raw().getpixel((0, 0)) == (0, 0, 255)
    assert RED.getpixel((0, 0)) == (255, 0, 0)


def test_a_copied_image_still_works() -> None:
    for image in (copy.deepcopy(AgentImage(RED)), pickle.loads(pickle.dumps(AgentImage(RED)))):
        assert same(image.to_raw(), RED)
        assert Path(image.to_string()).is_file()


def test_a_notebook_shows_an_image_as_its_pixels() -> None:
    shown = AgentImage(RED)._repr_png_()
    assert shown is not None
    with Image.open(io.BytesIO(shown)) as image:
        assert same(image, RED)


@pytest.mark.parametrize(
    "value", [SOUND, list(SOUND), (8_000, SOUND), (8_000, list(SOUND))], ids=lambda v: type(v)
)
def test_sound_of_samples(value: Any) -> None:
    sound = AgentAudio(value, samplerate=8_000)
    assert np.allclose(sound.to_raw(), SOUND)
    with wave.open(sound.to_string()) as file:
        assert (file.getframerate(), file.getnframes(), file.getnchannels()) == (8_000, 800, 1)
    assert sound.to_string() == sound.to_string()


@pytest.mark.parametrize("shape", [(2, 400), (400, 2)])
def test_channels_come_in_either_order(shape: tuple[int, int]) -> None:
    with wave.open(AgentAudio(SOUND.reshape(shape)).to_string()) as file:
        assert (file.getnchannels(), file.getnframes()) == (2, 400)


def test_sound_of_a_file_or_its_bytes(tmp_path: Path) -> None:
    made = Path(AgentAudio(SOUND, 8_000).to_string())
    path = tmp_path / "sound.wav"
    path.write_bytes(made.read_bytes())
    sound = AgentAudio(path)
    assert repr(sound) == f"<AgentAudio of {str(path)!r}>"
    assert sound.to_string() == str(path)
    assert np.allclose(np.asarray(sound.to_raw()), SOUND, atol=1e-4)
    assert sound.samplerate == 8_000
    again = AgentAudio(path.read_bytes())
    assert again.samplerate == 8_000
    assert np.allclose(np.asarray(again.to_raw()), SOUND, atol=1e-4)


def test_sound_of_a_tensor() -> None:
    torch = pytest.importorskip("torch", reason="torch is a download of its own")
    tensor = torch.tensor(SOUND, requires_grad=True)
    sound = AgentAudio(tensor)
    assert sound.to_raw() is tensor
    assert isinstance(AgentAudio(sound.to_string()).to_raw(), torch.Tensor)
    assert isinstance(handle_agent_output_types(tensor), AgentAudio)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(3, TypeError), (None, TypeError), (b"no sound", ValueError), ("https://x.org/", ValueError)],
    ids=str,
)
def test_what_is_no_sound_is_refused(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        AgentAudio(value)


def test_a_file_that_is_no_sound_is_told_when_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read as sound"):
        AgentAudio(tmp_path / "none.wav").to_raw()


def test_a_notebook_shows_a_player_with_nothing_of_the_value_as_markup() -> None:
    shown = AgentAudio(SOUND)._repr_html_()
    assert shown.startswith('<audio controls src="data:audio/wav;base64,UklGR')
    assert set("<>\"'") & set(shown[40:-11]) == set()


def test_results_by_their_own_type() -> None:
    assert isinstance(handle_agent_output_types("hi"), AgentText)
    assert isinstance(handle_agent_output_types(RED), AgentImage)
    image = AgentImage(RED)
    assert handle_agent_output_types(image) is image
    for value in (None, 5, 1.5, [1], {"a": 1}, b"bytes", SOUND, Path("x"), object()):
        assert handle_agent_output_types(value) is value


def test_results_by_the_type_that_is_declared() -> None:
    assert isinstance(handle_agent_output_types(png(), "image"), AgentImage)
    assert isinstance(handle_agent_output_types(SOUND, "audio"), AgentAudio)
    assert handle_agent_output_types(5, "string") == 5
    assert handle_agent_output_types(None, "image") is None
    with pytest.raises(TypeError, match="a int is no image"):
        handle_agent_output_types(5, "image")


@pytest.mark.parametrize("output_type", ["image", "audio", None])
def test_a_text_is_never_taken_for_a_path(tmp_path: Path, output_type: str | None) -> None:
    path = tmp_path / "private.png"
    path.write_bytes(png())
    given = handle_agent_output_types(str(path), output_type)
    assert type(given) is AgentText
    assert given == str(path)
    assert handle_agent_output_types(path, output_type) is path


def test_arguments_are_what_is_inside() -> None:
    args, kwargs = handle_agent_input_types(AgentText("a"), 1, image=AgentImage(RED), other=None)
    assert (args, kwargs["other"]) == (["a", 1], None)
    assert type(args[0]) is str
    assert type(kwargs["image"]) is Image.Image


def test_what_a_value_is_can_be_asked_of_anything() -> None:
    values = (RED, AgentImage(RED), AgentAudio(SOUND), AgentText("image"), 3, None, type)
    assert [media_of(value) for value in values] == ["image", "image", "audio", *[None] * 4]
    assert not issubclass(str, AgentType)


class Painter(Tool):
    name = "paint"
    description = "Paints."
    inputs: dict[str, Any] = {}
    output_type = "image"

    def forward(self) -> Any:
        return np.asarray(RED)


@tool
async def shout(text: str) -> str:
    """Shouts.

    Args:
        text: What.
    """
    return text.upper()


class Listener(Tool):
    name = "listen"
    description = "Listens."
    inputs = {"sound": {"type": "audio", "description": "What to."}}
    output_type = "integer"

    def forward(self, sound: Any) -> int:
        return len(sound)


def test_a_tool_called_by_hand_returns_what_it_always_did_or_an_agent_type() -> None:
    assert isinstance(Painter()(), np.ndarray)
    assert isinstance(Painter()(sanitize_inputs_outputs=True), AgentImage)

    async def main() -> list[Any]:
        checked: Tool = shout
        return [await shout("a"), await checked("a", sanitize_inputs_outputs=True)]

    assert list(map(type, asyncio.run(main()))) == [str, AgentText]


def test_a_tool_gets_the_samples_of_a_sound() -> None:
    assert Listener().call({"sound": AgentAudio(SOUND)}) == 800
    with pytest.raises(ValueError, match="must be audio that can be read"):
        Listener().call({"sound": AgentAudio("no/such/file.wav")})
