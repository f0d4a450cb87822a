"""Models: of every provider, in this process, functions, and scripted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage as ChatMessage
    from sanderling.messages import ChatMessageStreamDelta as ChatMessageStreamDelta
    from sanderling.messages import ChatMessageToolCall as ChatMessageToolCall
    from sanderling.messages import ChatMessageToolCallFunction as ChatMessageToolCallFunction
    from sanderling.messages import ChatMessageToolCallStreamDelta as ChatMessageToolCallStreamDelta
    from sanderling.messages import MessageRole as MessageRole
    from sanderling.messages import agglomerate_stream_deltas as agglomerate_stream_deltas

    from ._anthropic import AnthropicModel as AnthropicModel
    from ._api import ApiModel as ApiModel
    from ._azure import AzureOpenAIModel as AzureOpenAIModel
    from ._azure import AzureOpenAIServerModel as AzureOpenAIServerModel
    from ._base import MODEL_CLASSES as MODEL_CLASSES
    from ._base import Model as Model
    from ._base import ToolLike as ToolLike
    from ._bedrock import AmazonBedrockModel as AmazonBedrockModel
    from ._bedrock import AmazonBedrockServerModel as AmazonBedrockServerModel
    from ._callable import CallableModel as CallableModel
    from ._callable import as_message as as_message
    from ._callable import as_model as as_model
    from ._capabilities import Capabilities as Capabilities
    from ._choice import choose_model as choose_model
    from ._fallback import FallbackModel as FallbackModel
    from ._gemini import GeminiModel as GeminiModel
    from ._inference_client import HfApiModel as HfApiModel
    from ._inference_client import InferenceClientModel as InferenceClientModel
    from ._litellm import LiteLLMModel as LiteLLMModel
    from ._litellm import LiteLLMRouterModel as LiteLLMRouterModel
    from ._llamacpp import LlamaCppModel as LlamaCppModel
    from ._mlx import MLXModel as MLXModel
    from ._openai import OpenAIModel as OpenAIModel
    from ._openai import OpenAIServerModel as OpenAIServerModel
    from ._profile import ModelProfile as ModelProfile
    from ._recording import RecordingModel as RecordingModel
    from ._recording import ReplayModel as ReplayModel
    from ._registry import MODEL_REGISTRY as MODEL_REGISTRY
    from ._registry import model_from_dict as model_from_dict
    from ._registry import model_to_dict as model_to_dict
    from ._retry import RetryPolicy as RetryPolicy
    from ._scripted import ScriptedModel as ScriptedModel
    from ._scripted import ScriptedRequest as ScriptedRequest
    from ._settings import REMOVE_PARAMETER as REMOVE_PARAMETER
    from ._survey import ModelSource as ModelSource
    from ._survey import survey_models as survey_models
    from ._tool_calls import parse_json_tool_calls as parse_json_tool_calls
    from ._tool_calls import read_arguments as read_arguments
    from ._transformers import TransformersModel as TransformersModel
    from ._vllm import VLLMModel as VLLMModel

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        **dict.fromkeys(
            (
                "ChatMessage",
                "ChatMessageStreamDelta",
                "ChatMessageToolCall",
                "ChatMessageToolCallFunction",
                "ChatMessageToolCallStreamDelta",
                "MessageRole",
                "agglomerate_stream_deltas",
            ),
            "sanderling.messages",
        ),
        "AmazonBedrockModel": "._bedrock",
        "AmazonBedrockServerModel": "._bedrock",
        "AnthropicModel": "._anthropic",
        "ApiModel": "._api",
        "as_message": "._callable",
        "as_model": "._callable",
        "AzureOpenAIModel": "._azure",
        "AzureOpenAIServerModel": "._azure",
        "CallableModel": "._callable",
        "Capabilities": "._capabilities",
        "choose_model": "._choice",
        "FallbackModel": "._fallback",
        "GeminiModel": "._gemini",
        "HfApiModel": "._inference_client",
        "InferenceClientModel": "._inference_client",
        "LiteLLMModel": "._litellm",
        "LiteLLMRouterModel": "._litellm",
        "LlamaCppModel": "._llamacpp",
        "MLXModel": "._mlx",
        "Model": "._base",
        "model_from_dict": "._registry",
        "MODEL_CLASSES": "._base",
        "MODEL_REGISTRY": "._registry",
        "model_to_dict": "._registry",
        "ModelProfile": "._profile",
        "ModelSource": "._survey",
        "OpenAIModel": "._openai",
        "OpenAIServerModel": "._openai",
        "parse_json_tool_calls": "._tool_calls",
        "read_arguments": "._tool_calls",
        "RecordingModel": "._recording",
        "REMOVE_PARAMETER": "._settings",
        "ReplayModel": "._recording",
        "RetryPolicy": "._retry",
        "ScriptedModel": "._scripted",
        "ScriptedRequest": "._scripted",
        "survey_models": "._survey",
        "ToolLike": "._base",
        "TransformersModel": "._transformers",
        "VLLMModel": "._vllm",
    },
)
