from .tools.agent_types import AgentAudio as AgentAudio
from .tools.agent_types import AgentImage as AgentImage
from .tools.agent_types import AgentText as AgentText
from .tools.agent_types import AgentType as AgentType
from .tools.agent_types import handle_agent_input_types as handle_agent_input_types
from .tools.agent_types import handle_agent_output_types as handle_agent_output_types
