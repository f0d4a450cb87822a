from sanderling.console import YELLOW_HEX as YELLOW_HEX
from sanderling.loop import ActionOutput as ActionOutput
from sanderling.loop import ToolOutput as ToolOutput
from sanderling.memory import ActionStep as ActionStep
from sanderling.memory import FinalAnswerStep as FinalAnswerStep
from sanderling.memory import PlanningStep as PlanningStep
from sanderling.memory import SystemPromptStep as SystemPromptStep
from sanderling.memory import TaskStep as TaskStep
from sanderling.memory import ToolCall as ToolCall
from sanderling.runtime import FinalText as FinalText
from sanderling.runtime import RunResult as RunResult

from ._agent import MultiStepAgent as MultiStepAgent
from ._code_agent import CodeAgent as CodeAgent
from ._managed_agent import ManagedAgent as ManagedAgent
from ._old_helpers import AGENT_REGISTRY as AGENT_REGISTRY
from ._old_helpers import StreamEvent as StreamEvent
from ._old_names import AgentStepLog as AgentStepLog
from ._old_prompts import DEFAULT_TOOL_DESCRIPTION_TEMPLATE as DEFAULT_TOOL_DESCRIPTION_TEMPLATE
from ._old_prompts import (
    format_prompt_with_managed_agents_descriptions as format_prompt_with_managed_agents_descriptions,
)
from ._old_prompts import format_prompt_with_tools as format_prompt_with_tools
from ._old_prompts import get_tool_description_with_args as get_tool_description_with_args
from ._old_prompts import get_tool_descriptions as get_tool_descriptions
from ._old_prompts import show_agents_descriptions as show_agents_descriptions
from ._prompts import EMPTY_PROMPT_TEMPLATES as EMPTY_PROMPT_TEMPLATES
from ._prompts import FinalAnswerPromptTemplate as FinalAnswerPromptTemplate
from ._prompts import ManagedAgentPromptTemplate as ManagedAgentPromptTemplate
from ._prompts import PlanningPromptTemplate as PlanningPromptTemplate
from ._prompts import PromptTemplates as PromptTemplates
from ._tool_calling_agent import ToolCallingAgent as ToolCallingAgent
