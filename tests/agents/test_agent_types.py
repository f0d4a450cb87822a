"""Images and sound in runs: made by tools and by code, handed on, and given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sanderling import (
    ActionStep,
    AgentAudio,
    AgentImage,
    AgentText,
    CodeAgent,
    LogLevel,
    MultiStepAgent,
    ScriptedModel,
    Tool,
    ToolCallingAgent,
)
from sanderling.memory import AgentMemory
from support.drivers import Driver, both_drivers
from support.play import says

SOUND = np.linspace(-1, 1, 50)


class Painter(Tool):
    name = "paint"
    description = "Paints."
    inputs: dict[str, Any] = {}
    output_type = "image"

    def forward(self) -> Any:
        return np.full((4, 6), 0.5)


class Singer(Tool):
    name = "sing"
    description = "Sings."
    inputs: dict[str, Any] = {}
    output_type = "audio"

    def forward(self) -> Any:
        return (8_000, SOUND)


class Judge(Tool):
    name = "judge"
    description = "Judges."
    inputs = {
        "picture": {"type": "image", "description": "What was painted."},
        "song": {"type": "audio", "description": "What was sung."},
    }
    output_type = "string"

    def forward(self, picture: Image.Image, song: Any) -> str:
        return f"{picture.size}, {len(song)} samples"


class Passing(Tool):
    """Gives back what the model wrote, as if it were an image."""

    name = "show"
    description = "Shows."
    inputs = {"path": {"type": "string", "description": "What."}}
    output_type = "image"

    def forward(self, path: str) -> str:
        return path


def caller(*replies: Any, **kwargs: Any) -> ToolCallingAgent:
    tools = [Painter(), Singer(), Judge(), Passing()]
    return ToolCallingAgent(tools, ScriptedModel(replies), verbosity_level=LogLevel.OFF, **kwargs)


def coder(code: str, **kwargs: Any) -> CodeAgent:
    model = ScriptedModel([f"<code>\n{code}\n</code>"])
    return CodeAgent([Painter()], model, verbosity_level=LogLevel.OFF, **kwargs)


def observations(agent: MultiStepAgent) -> list[str | None]:
    return [step.observations for step in agent.memory.steps if isinstance(step, ActionStep)]


@both_drivers
def test_what_tools_made_is_kept_handed_on_and_given_back(driver: Driver) -> None:
    agent = caller(
        says(None, ("paint", {}), ("sing", {})),
        says(None, ("judge", {"picture": "image.png", "song": "audio.mp3"})),
        says(None, ("final_answer", {"answer": "image.png"})),
    )
    answer = driver.run(agent, "Go.")
    assert observations(agent)[1] == "(6, 4), 50 samples"
    assert isinstance(answer, AgentImage)
    assert isinstance(answer, Image.Image)
    assert Path(answer.to_string()).is_file()
    song = agent.state["audio.mp3"]
    assert isinstance(song, AgentAudio)
    assert (song.samplerate, song.to_raw() is SOUND) == (8_000, True)


@both_drivers
def test_a_path_that_the_model_wrote_is_not_read_by_way_of_a_tool(
    driver: Driver, tmp_path: Path
) -> None:
    private = tmp_path / "private.png"
    Image.new("L", (1, 1)).save(private)
    agent = caller(
        says(None, ("show", {"path": str(private)})),
        says(None, ("final_answer", {"answer": str(private)})),
    )
    assert type(driver.run(agent, "Go.")) is AgentText
    assert agent.state == {}
    assert observations(agent)[0] == str(private)


@both_drivers
def test_code_gives_back_an_image_that_a_tool_made(driver: Driver) -> None:
    with coder(
        "from PIL import Image\nfinal_answer(Image.fromarray((paint() * 255).astype('uint8')))",
        additional_authorized_imports=["PIL"],
    ) as agent:
        answer = driver.run(agent, "Go.")
    assert isinstance(answer, AgentImage)
    assert (answer.size, answer.getpixel((0, 0))) == ((6, 4), 127)
    assert type(answer.to_raw()) is Image.Image


@both_drivers
def test_an_answer_in_words_is_a_text_and_one_of_a_type_stays_of_that_type(driver: Driver) -> None:
    with coder("final_answer('yes')") as agent:
        answer = driver.run(agent, "Go.", return_full_result=True).output
    assert (type(answer), answer) == (AgentText, "yes")
    with coder("final_answer('yes')", output_type=str) as agent:
        assert type(driver.run(agent, "Go.")) is str


@both_drivers
def test_an_agent_image_goes_into_code_and_into_a_saved_memory(driver: Driver) -> None:
    with coder("final_answer((type(photo).__module__, photo.size, type(word).__name__))") as agent:
        given = {"photo": AgentImage(Image.new("RGB", (3, 2))), "word": AgentText("hi")}
        answer = driver.run(agent, "Go.", additional_args=given, images=[given["photo"]])
        assert answer == ("PIL.Image", (3, 2), "str")
        again = AgentMemory.from_json(agent.memory.to_json())
    assert again.to_messages()[1].parts[1:] == agent.memory.to_messages()[1].parts[1:]
