"""The import path of smolagents for what agents give back; see `sanderling.tools.agent_types`."""

from typing import TYPE_CHECKING

from ._lazy import lazy

if TYPE_CHECKING:
    from .tools.agent_types import AgentAudio as AgentAudio
    from .tools.agent_types import AgentImage as AgentImage
    from .tools.agent_types import AgentText as AgentText
    from .tools.agent_types import AgentType as AgentType
    from .tools.agent_types import handle_agent_input_types as handle_agent_input_types
    from .tools.agent_types import handle_agent_output_types as handle_agent_output_types

__getattr__, __dir__, __all__ = lazy(
    __name__,
    dict.fromkeys(
        (
            "AgentAudio",
            "AgentImage",
            "AgentText",
            "AgentType",
            "handle_agent_input_types",
            "handle_agent_output_types",
        ),
        "sanderling.tools.agent_types",
    ),
)
