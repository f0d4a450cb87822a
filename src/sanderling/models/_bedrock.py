"""Models on Amazon Bedrock, through the `boto3` package."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sanderling.errors import AgentGenerationError, MissingExtraError

from ._access import as_client_settings
from ._anthropic_messages import thinks
from ._api import ApiModel
from ._bedrock_converse import ConverseStream, ConverseWriter, mark, read_converse
from ._failures import Asked, Failure, Fault, cause, http_failure, short
from ._foreign import get
from ._structured import schema_of
from ._transport import transport_failure
from ._turns import conversation

if TYPE_CHECKING:
    from types import ModuleType

    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

    from sanderling.messages import ChatMessage, JSONObject

    from ._messages import RoleConversions
    from ._question import Question

_TIMEOUT: Final = 600.0
_CONNECTIONS: Final = 50
# The parameters of Converse; all others are those of the model.
_KNOWN: Final = frozenset(
    (
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "inferenceConfig",
        "messages",
        "modelId",
        "outputConfig",
        "performanceConfig",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
        "system",
        "toolConfig",
    )
)
# What stands in inferenceConfig, by the names under which a model or a call may be given it.
_INFERENCE: Final[Mapping[str, str]] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
_ANY: Final[Mapping[str, object]] = {"any": {}}  # one of the tools must be called
_OF_MODEL: Final = "additionalModelRequestFields"


class AmazonBedrockModel(ApiModel):
    """A model on Amazon Bedrock, by its Converse API.

    Credentials and region are found as `boto3` finds them: environment, profile, role.

    Args:
        model_id: The model, an inference profile, or their ARN, such as
            ``"us.anthropic.claude-sonnet-4-6"``.
        client: A client that you made: ``boto3.client("bedrock-runtime", ...)``.
        client_kwargs: Arguments of ``boto3.client``, such as ``{"region_name": "us-east-1"}``.
        custom_role_conversions: Which role stands for which; replaces the usual ones (tool call to
            assistant, tool response to user).
        **kwargs: Those of `ApiModel`, and parameters of every request: those of Converse
            (``inferenceConfig``, ``guardrailConfig``, …); ``max_tokens``, ``temperature``,
            ``top_p`` and ``stop``, which are put into ``inferenceConfig``; and any others are
            parameters of the model itself, such as ``top_k`` or ``thinking``.

    Raises:
        MissingExtraError: The package `boto3` is not installed.
    """

    model_id: str
    provider: ClassVar[str] = "bedrock"
    _needs = ("bedrock", "boto3")
    _own_parameters = "additionalModelRequestFields"

    def __init__(
        self,
        model_id: str,
        client: BedrockRuntimeClient | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        custom_role_conversions: RoleConversions | None = None,
        **kwargs: Any,
    ) -> None:
        self.client_kwargs = as_client_settings("client_kwargs", client_kwargs)
        self.model_id = model_id
        self._writer = ConverseWriter(self.provider, model_id)
        super().__init__(model_id, custom_role_conversions, client, **kwargs)

    def create_client(self) -> BedrockRuntimeClient:
        """Returns a client of the `boto3` package."""
        boto3 = _sdk()
        from botocore.config import Config
        from botocore.exceptions import NoRegionError

        seconds = self.timeout or _TIMEOUT
        usual = Config(
            connect_timeout=min(seconds, self.CONNECT_SECONDS),
            read_timeout=seconds,
            max_pool_connections=_CONNECTIONS,
        )
        given: dict[str, Any] = dict(self.client_kwargs)
        # Repeating is done once, above: here it would multiply.
        once = Config(retries={"total_max_attempts": 1})
        given["config"] = usual.merge(given.get("config") or usual).merge(once)
        if region := os.environ.get("AWS_REGION"):  # the package reads AWS_DEFAULT_REGION only
            given.setdefault("region_name", region)
        try:
            # A session of its own: the package's default one is not made for several threads.
            client: BedrockRuntimeClient = boto3.Session().client("bedrock-runtime", **given)
        except NoRegionError as error:
            raise AgentGenerationError(
                "Amazon Bedrock is asked in a region, and none is named: set the environment "
                'variable AWS_REGION, or pass client_kwargs={"region_name": ...}.'
            ) from error
        return client

    def _prepare(self, question: Question) -> dict[str, Any]:
        abilities = self.capabilities
        talk = conversation(
            question.messages,
            self._writer,
            self.custom_role_conversions,
            self.flatten_messages_as_text or not abilities.images,
        )
        if abilities.cache_marks:
            mark(talk)
        specific: dict[str, object] = {
            "modelId": self.model_id,
            "messages": [{"role": turn.role, "content": turn.blocks} for turn in talk.turns],
        }
        if talk.system:
            specific["system"] = talk.system
        stops = [stop for stop in question.stops if stop.strip()]
        if stops and self.supports_stop_parameter:
            specific["stop"] = stops[: abilities.max_stops]
        if question.tools and abilities.tools:
            specified = [_tool(tool.to_json_schema()) for tool in question.tools]
            must: dict[str, object] = {"toolChoice": _ANY} if abilities.tool_choice else {}
            specific["toolConfig"] = {"tools": specified, **must}
        request = self._parameters(specific, question.options)
        if (schema := schema_of(question.response_format)) is not None:
            # How much effort the model makes is told there as well.
            form = {"textFormat": _format(schema)}
            request["outputConfig"] = {**form, **(request.get("outputConfig") or {})}
        placed = _in_their_places(request)
        tools = placed.get("toolConfig") or {}
        if get(tools, "toolChoice") == _ANY and thinks(get(placed.get(_OF_MODEL), "thinking")):
            placed["toolConfig"] = {**tools, "toolChoice": {"auto": {}}}
        return placed

    def _package_parameters(self) -> Collection[str]:
        return _KNOWN | _INFERENCE.keys() | {_OF_MODEL}

    def _sent_stops(self, request: Mapping[str, Any]) -> Collection[str]:
        return get(request.get("inferenceConfig"), "stopSequences") or ()

    def _read(self, answer: Any) -> ChatMessage:
        return read_converse(answer, self._writer)

    def _reader(self) -> ConverseStream:
        return ConverseStream(self._writer)

    def _send(self, request: dict[str, Any]) -> Any:
        return self.client.converse(**request)

    @contextmanager
    def _open(self, request: dict[str, Any]) -> Generator[Iterator[Any], None, None]:
        events = self.client.converse_stream(**request)["stream"]
        try:
            yield events
        finally:
            events.close()

    def _interrupt(self, opened: Iterator[Any]) -> None:
        body: Any = getattr(opened, "_raw_stream", None)  # the package offers no way to it
        # Where the answer is at its end there is no connection any more.
        with suppress(AttributeError, ValueError, RuntimeError, OSError):
            body.shutdown()

    def _failure(self, error: Exception) -> Failure | None:
        _sdk()
        from botocore import eventstream, parsers
        from botocore import exceptions as errors

        match error:
            case errors.EventStreamError():
                said = error.response.get("Error", {})
                return Failure(Fault.BROKEN, str(said.get("Message")), code=str(said.get("Code")))
            case errors.ClientError():
                return _refusal(error)
            case errors.ReadTimeoutError() | errors.ConnectTimeoutError():
                return Failure(Fault.TIMEOUT, short(error))
            case errors.HTTPClientError() | errors.ConnectionError():
                return Failure(Fault.CONNECTION, cause(error))
            case (
                errors.NoCredentialsError()
                | errors.PartialCredentialsError()
                | errors.CredentialRetrievalError()
                | errors.NoAuthTokenError()
                | errors.TokenRetrievalError()
                | errors.SSOError()
            ):
                return Failure(Fault.ACCESS, short(error))
            case eventstream.ParserError() | parsers.ResponseParserError():
                return Failure(Fault.UNREADABLE, short(error))
        return transport_failure(error)  # a streamed answer is read below the package

    def _asked(self) -> Asked:
        return Asked(
            self.model_id,
            str(self.client_kwargs.get("endpoint_url") or "Amazon Bedrock"),
            any("key" in name or "token" in name for name in self.client_kwargs),
            "AWS_BEARER_TOKEN_BEDROCK (or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)",
            "Converse API",
            "that the model is offered in the region (AWS_REGION), or by an inference profile",
        )

    def _settings(self) -> dict[str, object]:
        given = {"client_kwargs": self.client_kwargs} if self.client_kwargs else {}
        return {**super()._settings(), **given}


AmazonBedrockServerModel = AmazonBedrockModel


def _sdk() -> ModuleType:
    try:
        import boto3
    except ModuleNotFoundError as error:
        raise MissingExtraError("AmazonBedrockModel", "bedrock", "boto3") from error
    return boto3


def _in_their_places(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of Converse: the others in it are moved to where they belong."""
    request = {name: value for name, value in parameters.items() if name in _KNOWN}
    inference = {
        place: parameters[name] for name, place in _INFERENCE.items() if name in parameters
    }
    if inference := {**inference, **(request.pop("inferenceConfig", None) or {})}:
        request["inferenceConfig"] = inference
    of_model = {
        name: value
        for name, value in parameters.items()
        if name not in _KNOWN and name not in _INFERENCE and name != _OF_MODEL
    }
    if of_model := {**of_model, **(parameters.get(_OF_MODEL) or {})}:
        request[_OF_MODEL] = of_model
    return request


def _refusal(error: Any) -> Failure:
    about, said = error.response.get("ResponseMetadata", {}), error.response.get("Error", {})
    return http_failure(
        about.get("HTTPStatusCode", 0),
        about.get("HTTPHeaders", {}),
        said.get("Message"),
        said.get("Code"),
        about.get("RequestId"),
    )


def _format(schema: Mapping[str, Any]) -> dict[str, object]:
    return {
        "type": "json_schema",
        "structure": {"jsonSchema": {"schema": json.dumps(schema), "name": "reply"}},
    }


def _tool(schema: JSONObject) -> dict[str, object]:
    function = schema["function"]
    specification = {
        "name": get(function, "name"),
        "inputSchema": {"json": get(function, "parameters")},
    }
    if description := get(function, "description"):
        specification["description"] = description
    return {"toolSpec": specification}
