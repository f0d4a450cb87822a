"""The providers that go through the scenarios, one instance each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.dialects.anthropic import AnthropicDialect
from support.dialects.bedrock import BedrockDialect
from support.dialects.chat import (
    AzureDialect,
    HubDialect,
    LiteLLMDialect,
    LiteLLMRouterDialect,
    OpenAIDialect,
)
from support.dialects.gemini import GeminiDialect

if TYPE_CHECKING:
    from support.dialects.dialect import Dialect

DIALECTS: tuple[Dialect, ...] = (
    OpenAIDialect(),
    AzureDialect(),
    HubDialect(),
    LiteLLMDialect(),
    LiteLLMRouterDialect(),
    AnthropicDialect(),
    BedrockDialect(),
    GeminiDialect(),
)
