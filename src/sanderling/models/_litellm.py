"""Models behind the `litellm` package, which knows about a hundred providers."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from sanderling.errors import MissingExtraError

from ._access import as_client_settings, as_key, one_address
from ._arguments import as_settings, check_at_least, check_text
from ._capabilities import Capabilities, capabilities_of, common_capabilities
from ._chat import ChatCompletionsModel
from ._failures import Asked, Failure, Fault, causes, http_failure, short
from ._openai_errors import openai_failure

if TYPE_CHECKING:
    from types import ModuleType

    from ._messages import RoleConversions
    from ._question import Question

_KEYS = "that its provider has in LiteLLM's documentation"
_ADDRESS = "that the name has its provider before it, and api_base, if there is one"
_DEFAULT = "anthropic/claude-3-5-sonnet-20240620"
# The chat templates behind these take texts, not parts.
_TEXT_ONLY = ("ollama", "groq", "cerebras")
_NO_KEY = re.compile(r"missing (credentials|\w+ api key)", re.I)


class LiteLLMModel(ChatCompletionsModel):
    """A model of any provider that LiteLLM knows; keys come from that provider's variables.

    Args:
        model_id: The provider and its name of the model, such as ``"anthropic/claude-sonnet-4-5"``.
        api_base: The base address of the server, where it is not the provider's own.
        api_key: The key.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        flatten_messages_as_text: The server takes text only; by default where that is known
            (Ollama, Groq, Cerebras).
        base_url: Another name of `api_base`.
        **kwargs: Those of `ApiModel`, and parameters of every request, such as ``num_ctx``.

    Raises:
        MissingExtraError: The package `litellm` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "litellm"
    _needs = ("litellm", "litellm")

    def __init__(
        self,
        model_id: str | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        custom_role_conversions: RoleConversions | None = None,
        flatten_messages_as_text: bool | None = None,
        *,
        base_url: str | None = None,
        **kwargs: Any,
    ) -> None:
        if model_id is None:
            warnings.warn(
                f"LiteLLMModel was made without a model_id: {_DEFAULT!r} is used. Name the model "
                "you want.",
                FutureWarning,
                stacklevel=2,
            )
            model_id = _DEFAULT
        check_text("model_id", model_id)
        self.api_base = one_address(api_base, base_url)
        self._api_key = as_key("api_key", api_key)
        self._flatten_given = flatten_messages_as_text
        if flatten_messages_as_text is None:
            flatten_messages_as_text = any(
                each.startswith(_TEXT_ONLY) for each in self._asked_models(model_id)
            )
        super().__init__(
            model_id,
            custom_role_conversions=custom_role_conversions,
            flatten_messages_as_text=flatten_messages_as_text,
            **kwargs,
        )

    def _asked_models(self, model_id: str) -> Sequence[str]:
        """Returns what LiteLLM may be asked for under the name."""
        return [model_id]

    def create_client(self) -> Any:
        """Returns what is asked: the package itself."""
        return _sdk()

    def create_async_client(self) -> Any:
        """Returns what is asked under asyncio: the package itself."""
        return self.create_client()

    def _prepare(self, question: Question) -> dict[str, Any]:
        given: dict[str, object] = {"api_base": self.api_base, "api_key": self._api_key}
        if self.timeout is not None:
            _sdk()  # brings httpx
            http = importlib.import_module("httpx")
            connect = min(self.timeout, self.CONNECT_SECONDS)
            given["timeout"] = http.Timeout(self.timeout, connect=connect)
        there = {name: value for name, value in given.items() if value is not None}
        # Repeating is done once, above: here it would multiply.
        return {"num_retries": 0, "max_retries": 0, **there, **super()._prepare(question)}

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.completion(**request)

    async def _asend(self, request: dict[str, Any]) -> Any:
        return await self.client.acompletion(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        stream = self.client.completion(**request)
        try:
            yield stream
        finally:
            _close(stream)

    @asynccontextmanager
    async def _aopen(self, request: dict[str, Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
        stream = await self.client.acompletion(**request)
        try:
            yield stream
        finally:
            await stream.aclose()

    def _failure(self, error: Exception) -> Failure | None:
        package = _sdk()
        if any(isinstance(each, TimeoutError) for each in causes(error)):
            return Failure(Fault.TIMEOUT, short(error))
        if isinstance(error, package.exceptions.MidStreamFallbackError):
            return Failure(Fault.BROKEN, short(error))
        if isinstance(error, package.UnsupportedParamsError):  # without the fields of its base
            return http_failure(error.status_code, {}, error)
        failure = openai_failure(error)
        if _NO_KEY.search(failure.said):  # told as a failure of the server, or of the connection
            return Failure(Fault.ACCESS, failure.said)
        # The package rebuilds the provider's answer, without its headers: those it keeps apart.
        headers = getattr(error, "litellm_response_headers", None) or {}
        status = error.status_code if isinstance(error, package.APIError) else failure.status
        if status is None:
            return failure
        return http_failure(status, headers, failure.said, failure.code)

    def _asked(self) -> Asked:
        url = self.api_base or f"LiteLLM ({self.model_id.partition('/')[0]})"
        key_given = self._api_key is not None
        return Asked(self.model_id, url.rstrip("/"), key_given, _KEYS, address=_ADDRESS)

    def _settings(self) -> dict[str, object]:
        given = {
            "api_base": self.api_base,
            "api_key": self._api_key,
            "flatten_messages_as_text": self._flatten_given,
        }
        there = {name: value for name, value in given.items() if value is not None}
        shared = super()._settings()
        shared.pop("flatten_messages_as_text", None)  # it may be our guess
        return {**shared, **there}


class LiteLLMRouterModel(LiteLLMModel):
    """Several deployments behind one name: LiteLLM's router chooses among them.

    https://docs.litellm.ai/docs/routing

    Args:
        model_id: The ``model_name`` of the deployments to use.
        model_list: The deployments, as `litellm.Router` takes them.
        client_kwargs: Further arguments of `litellm.Router`, such as ``routing_strategy``.
            ``num_retries`` says how often a request is repeated, as `retry` does.
        custom_role_conversions: As for `LiteLLMModel`.
        flatten_messages_as_text: As for `LiteLLMModel`.
        **kwargs: As for `LiteLLMModel`.

    Raises:
        ValueError: No deployment has that name.
        MissingExtraError: The package `litellm` is not installed.
    """

    def __init__(
        self,
        model_id: str,
        model_list: Sequence[Mapping[str, Any]],
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        flatten_messages_as_text: bool | None = None,
        **kwargs: Any,
    ) -> None:
        self.model_list = [_deployment(each) for each in model_list]
        names = [str(deployment.get("model_name")) for deployment in self.model_list]
        if model_id not in names:
            raise ValueError(
                f"no deployment of model_list has the model_name {model_id!r}; there is: "
                f"{', '.join(names) or 'none'}"
            )
        self.client_kwargs = as_settings("client_kwargs", client_kwargs)
        if "retry" not in kwargs and (repeats := self.client_kwargs.get("num_retries")) is not None:
            check_at_least("num_retries", repeats, 0)
            kwargs["retry"] = {"attempts": repeats + 1}
        super().__init__(
            model_id,
            custom_role_conversions=custom_role_conversions,
            flatten_messages_as_text=flatten_messages_as_text,
            **kwargs,
        )

    def create_client(self) -> Any:
        """Returns the router."""
        # Repeating is done once, above: here it would multiply.
        settings = {**self.client_kwargs, "num_retries": 0}
        return _sdk().Router(model_list=self.model_list, **settings)

    def _asked_models(self, model_id: str) -> Sequence[str]:
        return [
            str((deployment.get("litellm_params") or {}).get("model"))
            for deployment in self.model_list
            if deployment.get("model_name") == model_id
        ]

    def _known_capabilities(self) -> Capabilities:
        return common_capabilities(
            [
                capabilities_of(self._standing(), each, self._given_capabilities)
                for each in self._asked_models(self.model_id)
            ]
        )

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        # A stream of the blocking router cannot be closed; one of the asynchronous router can.
        from ._twins import iterate

        async def chunks() -> AsyncGenerator[Any, None]:
            async with self._aopen(request) as opened:
                async for chunk in opened:
                    yield chunk

        with closing(iterate(chunks())) as stream:
            yield stream

    def _settings(self) -> dict[str, object]:
        return {
            **super()._settings(),
            "model_list": self.model_list,
            **({"client_kwargs": self.client_kwargs} if self.client_kwargs else {}),
        }


def _deployment(value: Mapping[str, Any]) -> dict[str, Any]:
    deployment = as_settings("a deployment", value)
    if (given := deployment.get("litellm_params")) is not None:
        deployment["litellm_params"] = as_client_settings("litellm_params", given)
    return deployment


def _sdk() -> ModuleType:
    # Or the package asks GitHub for a list of prices while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        return importlib.import_module("litellm")
    except ModuleNotFoundError as error:
        raise MissingExtraError("LiteLLMModel", "litellm", "litellm") from error


def _close(stream: Any) -> None:
    """Closes a stream of the package, which has no method for it: the one within does."""
    close = getattr(getattr(stream, "completion_stream", None), "close", None)
    if callable(close):
        close()
