"""Models behind an OpenAI-compatible server, through the `openai` package."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

from sanderling.errors import MissingExtraError

from ._access import as_address, as_client_settings, as_key, key_of_environment, one_address
from ._arguments import check_at_least
from ._body import async_client_options, client_options, with_http_client
from ._chat import ChatCompletionsModel, known_apart
from ._endpoints import OPENAI, key_variable
from ._failures import Asked, Failure, missing_key
from ._openai_errors import openai_failure

if TYPE_CHECKING:
    from types import ModuleType

    import openai

    from ._messages import RoleConversions
    from ._question import Question


class OpenAIModel(ChatCompletionsModel):
    """A model of OpenAI, or of any server with its chat completions API.

    That is nearly all of them: vLLM, llama.cpp, Ollama, LM Studio, the Hugging Face router, Gemini,
    Mistral.

    Args:
        model_id: The server's name of the model.
        api_base: The base address, such as ``"http://localhost:8000/v1"``; by default the
            environment variable OPENAI_BASE_URL, else OpenAI's.
        api_key: By default the environment variable of the provider at `api_base`, where that is
            one that ``sanderling models`` lists; else OPENAI_API_KEY. Other servers may need none.
        organization: Whose account is used.
        project: The project in it.
        client_kwargs: Further arguments of `openai.OpenAI`. ``max_retries`` says how often a
            request is repeated, as `retry` does.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        flatten_messages_as_text: The server takes text only.
        base_url: Another name of `api_base`, as in the `openai` package.
        **kwargs: Those of `ApiModel`, and parameters of every request, such as ``temperature``.
            Those that only the server knows: ``extra_body={"name": value}``.

    Raises:
        ValueError: There are both `api_base` and `base_url`; the address does not begin with
            http:// or https://; or the key cannot be sent in a header.
        TypeError: No request has such a parameter.
        MissingExtraError: The package `openai` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "openai"
    _passes_on = False
    _needs = ("openai", "openai")
    form_settings = ChatCompletionsModel.form_settings | {"organization", "project"}
    _with_key = frozenset({"api_base"})

    def __init__(
        self,
        model_id: str,
        api_base: str | None = None,
        api_key: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        flatten_messages_as_text: bool = False,
        *,
        base_url: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.api_base = one_address(api_base, base_url)
        self.organization = organization
        self.project = project
        self.client_kwargs = as_client_settings("client_kwargs", client_kwargs)
        self._api_key = as_key("api_key", api_key)
        self.model_id = model_id
        if "retry" not in kwargs and (repeats := self.client_kwargs.get("max_retries")) is not None:
            check_at_least("max_retries", repeats, 0)
            kwargs["retry"] = {"attempts": repeats + 1}
        super().__init__(
            model_id,
            custom_role_conversions=custom_role_conversions,
            flatten_messages_as_text=flatten_messages_as_text,
            **kwargs,
        )

    def create_client(self) -> openai.OpenAI:
        """Returns a client of the `openai` package, for blocking code."""
        return cast("openai.OpenAI", openai_sdk().OpenAI(**self._blocking_arguments()))

    def create_async_client(self) -> openai.AsyncOpenAI:
        """Returns a client of the `openai` package, for the event loop that runs."""
        return cast("openai.AsyncOpenAI", openai_sdk().AsyncOpenAI(**self._async_arguments()))

    def _standing(self) -> str:
        return "openai:openrouter" if "//openrouter.ai/" in self._asked().url else self.provider

    def _prepare(self, question: Question) -> dict[str, Any]:
        return known_apart(super()._prepare(question), self._package_parameters())

    def _package_parameters(self) -> Collection[str]:
        return _known_parameters()

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.chat.completions.create(**request)

    async def _asend(self, request: dict[str, Any]) -> Any:
        client = await self._clients.running()
        return await client.chat.completions.create(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        with self.client.chat.completions.create(**request) as chunks:
            yield chunks

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        client = await self._clients.running()
        async with await client.chat.completions.create(**request) as chunks:
            yield chunks

    def _failure(self, error: Exception) -> Failure | None:
        return openai_failure(error)

    def _asked(self) -> Asked:
        url = str(self._base_url() or OPENAI.url).rstrip("/")
        key_given = self._api_key is not None or "api_key" in self.client_kwargs
        return Asked(self.model_id, url, key_given, key_variable(url))

    def _base_url(self) -> object:
        variable = "OPENAI_BASE_URL"
        given = self.client_kwargs.get("base_url") or self.api_base
        return given or as_address(variable, os.environ.get(variable) or None)

    def _blocking_arguments(self) -> dict[str, Any]:
        make = openai_sdk().DefaultHttpxClient
        return with_http_client(self._client_arguments(), lambda: make(**client_options()))

    def _async_arguments(self) -> dict[str, Any]:
        make = openai_sdk().DefaultAsyncHttpxClient
        return with_http_client(self._client_arguments(), lambda: make(**async_client_options()))

    def _client_arguments(self) -> dict[str, Any]:
        given = {
            "base_url": self.api_base,
            "api_key": self._api_key,
            "organization": self.organization,
            "project": self.project,
        }
        arguments = self._with_usual(given)
        if "api_key" in arguments:
            return arguments
        # The package insists on a key; a local server does not.
        return {**arguments, "api_key": self._key_of_environment() or "none"}

    def _key_of_environment(self) -> str | None:
        asked = self._asked()
        key = key_of_environment(asked.key_variable) or key_of_environment(OPENAI.key_variable)
        if key is None and asked.url == OPENAI.url:
            raise missing_key(asked)
        return key

    def _check_key(self) -> None:
        if self._api_key is None and "api_key" not in self.client_kwargs:
            self._key_of_environment()

    def _with_usual(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Joins the arguments of a client with what every client of the package is given."""
        there = {name: value for name, value in given.items() if value is not None}
        if self.timeout is not None:
            there["timeout"] = openai_sdk().Timeout(
                self.timeout, connect=min(self.timeout, self.CONNECT_SECONDS)
            )
        # Repeating is done once, above: here it would multiply.
        return {**there, **self.client_kwargs, "max_retries": 0}

    def _settings(self) -> dict[str, object]:
        given = {
            "api_base": self.api_base,
            "api_key": self._api_key,
            "organization": self.organization,
            "project": self.project,
            "client_kwargs": self.client_kwargs or None,
        }
        there = {name: value for name, value in given.items() if value is not None}
        return {**super()._settings(), **there}


OpenAIServerModel = OpenAIModel


def openai_sdk() -> ModuleType:
    """Returns the package.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import openai
    except ModuleNotFoundError as error:
        raise MissingExtraError("OpenAIModel", "openai", "openai") from error
    return openai


@functools.cache
def _known_parameters() -> frozenset[str]:
    create = openai_sdk().resources.chat.Completions.create
    return frozenset(inspect.signature(create).parameters)
