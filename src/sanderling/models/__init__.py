"""Models: OpenAI-compatible servers, models in this process, functions, and scripted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._base import Model as Model
    from ._base import ToolLike as ToolLike
    from ._callable import CallableModel as CallableModel
    from ._callable import as_model as as_model
    from ._choice import choose_model as choose_model
    from ._llamacpp import LlamaCppModel as LlamaCppModel
    from ._openai import OpenAIModel as OpenAIModel
    from ._openai import OpenAIServerModel as OpenAIServerModel
    from ._profile import ModelProfile as ModelProfile
    from ._recording import RecordingModel as RecordingModel
    from ._recording import ReplayModel as ReplayModel
    from ._scripted import ScriptedModel as ScriptedModel
    from ._scripted import ScriptedRequest as ScriptedRequest
    from ._settings import REMOVE_PARAMETER as REMOVE_PARAMETER
    from ._survey import ModelSource as ModelSource
    from ._survey import survey_models as survey_models
    from ._tool_calls import parse_json_tool_calls as parse_json_tool_calls
    from ._tool_calls import read_arguments as read_arguments

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "CallableModel": "._callable",
        "LlamaCppModel": "._llamacpp",
        "Model": "._base",
        "ModelProfile": "._profile",
        "OpenAIModel": "._openai",
        "OpenAIServerModel": "._openai",
        "ModelSource": "._survey",
        "REMOVE_PARAMETER": "._settings",
        "RecordingModel": "._recording",
        "ReplayModel": "._recording",
        "ScriptedModel": "._scripted",
        "ScriptedRequest": "._scripted",
        "ToolLike": "._base",
        "as_model": "._callable",
        "choose_model": "._choice",
        "parse_json_tool_calls": "._tool_calls",
        "read_arguments": "._tool_calls",
        "survey_models": "._survey",
    },
)
