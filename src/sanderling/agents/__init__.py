"""Agents: definitions that assemble a model, tools and prompts, and run tasks with them."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._base import MultiStepAgent as MultiStepAgent
    from ._code import CodeAgent as CodeAgent
    from ._prompts import FinalAnswerPromptTemplate as FinalAnswerPromptTemplate
    from ._prompts import PromptTemplates as PromptTemplates
    from ._tool_calling import ToolCallingAgent as ToolCallingAgent

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "CodeAgent": "._code",
        "FinalAnswerPromptTemplate": "._prompts",
        "MultiStepAgent": "._base",
        "PromptTemplates": "._prompts",
        "ToolCallingAgent": "._tool_calling",
    },
)
