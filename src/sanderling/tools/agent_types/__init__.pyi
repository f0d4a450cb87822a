from ._audio import AgentAudio as AgentAudio
from ._base import AgentText as AgentText
from ._base import AgentType as AgentType
from ._base import as_raw as as_raw
from ._base import handle_agent_input_types as handle_agent_input_types
from ._base import handle_agent_output_types as handle_agent_output_types
from ._base import media_of as media_of
from ._image import AgentImage as AgentImage
