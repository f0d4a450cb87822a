"""What agents give back: text, images and sound, with the methods that smolagents gave them."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._audio import AgentAudio as AgentAudio
    from ._base import AgentText as AgentText
    from ._base import AgentType as AgentType
    from ._base import as_raw as as_raw
    from ._base import handle_agent_input_types as handle_agent_input_types
    from ._base import handle_agent_output_types as handle_agent_output_types
    from ._base import media_of as media_of
    from ._image import AgentImage as AgentImage

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "AgentAudio": "._audio",
        "AgentImage": "._image",
        "AgentText": "._base",
        "AgentType": "._base",
        "as_raw": "._base",
        "handle_agent_input_types": "._base",
        "handle_agent_output_types": "._base",
        "media_of": "._base",
    },
)
