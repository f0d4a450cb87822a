"""The import path of smolagents 1.4 for what agents give back."""

from typing import TYPE_CHECKING

from . import agent_types
from ._lazy import lazy

if TYPE_CHECKING:
    from .agent_types import AgentAudio as AgentAudio
    from .agent_types import AgentImage as AgentImage
    from .agent_types import AgentText as AgentText
    from .agent_types import AgentType as AgentType
    from .agent_types import handle_agent_input_types as handle_agent_input_types
    from .agent_types import handle_agent_output_types as handle_agent_output_types

__getattr__, __dir__, __all__ = lazy(
    __name__, dict.fromkeys(agent_types.__all__, "sanderling.tools.agent_types")
)
