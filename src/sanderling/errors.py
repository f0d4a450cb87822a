"""The errors of Sanderling, by who must act.

::

    AgentError                      something went wrong inside a run
    ├── AgentParsingError           the model's reply holds no action        -> shown to the model
    ├── AgentExecutionError         the action failed                        -> shown to the model
    │   ├── AgentToolCallError      the call does not fit the tool           -> shown to the model
    │   └── AgentToolExecutionError the tool itself raised                   -> shown to the model
    ├── AgentMaxStepsError          no answer within the steps allowed       -> kept on the step
    ├── AgentGenerationError        the model could not be asked             -> raised to the caller
    │   ├── ModelAccessError        key, rights or credit                    -> raised to the caller
    │   ├── UnknownModelError       no such model there                      -> raised to the caller
    │   ├── ContextLengthError      the conversation is too long             -> raised to the caller
    │   ├── ContentFilterError      the provider will not speak of this      -> raised to the caller
    │   ├── RateLimitError          too many requests, also after waiting    -> raised to the caller
    │   └── ModelTimeoutError       no answer in time, also after repeating  -> raised to the caller
    └── AgentStoppedError           the run was ended from outside           -> raised to the caller
        ├── AgentInterruptedError   somebody called `interrupt`
        └── AgentLimitError         a limit of the run is reached

    SandboxError                    something went wrong in or around the sandbox
    ├── InterpreterError            the model's code raised                  -> shown to the model
    ├── SandboxLimitExceeded        the code used up more than it may        -> shown to the model
    │   └── SandboxTimeout          … of time                                -> shown to the model
    ├── SandboxCrashed              the code ended its own interpreter       -> shown to the model
    ├── SandboxViolation            the sandbox broke the protocol; killed   -> shown to the model
    └── SandboxUnavailable          this machine cannot build the walls      -> raised to the caller

    MissingExtraError               an optional package is not installed     -> raised to the caller

Messages may quote what a model, a server or code wrote, so they hold no character that a terminal
obeys: see `sanderling._show.visible`.
"""

import builtins
from collections.abc import Mapping
from typing import Any, Literal, Self

from ._show import visible


class AgentError(Exception):
    """Base of every error that belongs to a run.

    Args:
        message: What happened, where, and what to do about it.
        logger: Accepted so that code written for smolagents keeps working. Errors do not log.

    Attributes:
        run: The `Run` that it has ended, with the memory of what was done; None where it has ended
            none. Copies and pickles of the error are without it.
    """

    __slots__ = ("run",)  # kept out of copies and pickles

    run: Any  # a Run is not known down here

    def __init__(self, message: str, logger: object = None) -> None:
        del logger
        self.run = None
        self.message = visible(str(message))
        super().__init__(self.message)

    def dict(self) -> builtins.dict[str, Any]:
        """Returns the JSON form: ``{"type": class name, "message": text}`` and further fields."""
        return {"type": type(self).__name__, "message": str(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "AgentError":
        """Loads what `dict` wrote; a class that is not the library's becomes `AgentError`."""
        kind = _KINDS.get(str(data.get("type")), AgentError)
        return (kind if issubclass(kind, AgentError) else AgentError)._from(data)

    @classmethod
    def _from(cls, data: Mapping[str, Any]) -> Self:
        return cls(str(data.get("message", "")))


class AgentParsingError(AgentError):
    """The model's reply holds no action that can be carried out."""


class AgentExecutionError(AgentError):
    """The action was understood, and failed."""


class AgentToolCallError(AgentExecutionError):
    """A tool was called by a wrong name or with arguments that do not fit it."""


class AgentToolExecutionError(AgentExecutionError):
    """A tool raised while it ran."""


class AgentMaxStepsError(AgentError):
    """The run used all its steps without a final answer."""


class AgentGenerationError(AgentError):
    """The model could not be asked: wrong key, server down, unreadable reply.

    Args:
        message: What happened, where, and what to do about it.
        logger: As for every `AgentError`.
        status: The HTTP status that the provider answered with, if it did.
        request_id: The provider's name of the request, which its support asks for.
        retryable: Whether the same request may succeed later.
        retry_after: How many seconds the provider asks to wait before that.
    """

    def __init__(
        self,
        message: str,
        logger: object = None,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, logger)
        self.status = status
        self.request_id = request_id
        self.retryable = retryable
        self.retry_after = retry_after

    def dict(self) -> builtins.dict[str, Any]:
        """Returns the JSON form, with what the provider answered."""
        return {
            **super().dict(),
            "status": self.status,
            "request_id": self.request_id,
            "retryable": self.retryable,
            "retry_after": self.retry_after,
        }

    @classmethod
    def _from(cls, data: Mapping[str, Any]) -> Self:
        status, request_id = data.get("status"), data.get("request_id")
        retry_after = data.get("retry_after")
        return cls(
            str(data.get("message", "")),
            status=status if isinstance(status, int) else None,
            request_id=request_id if isinstance(request_id, str) else None,
            retryable=data.get("retryable") is True,
            retry_after=retry_after if isinstance(retry_after, int | float) else None,
        )


class ModelAccessError(AgentGenerationError):
    """The provider refused the key, or it does not reach the model, or there is no credit left."""


class UnknownModelError(AgentGenerationError):
    """The provider has no model of that name, or does not speak this protocol at this address."""


class ContextLengthError(AgentGenerationError):
    """The conversation is longer than the model can read."""


class ContentFilterError(AgentGenerationError):
    """The provider's content filter refused the conversation or the reply."""


class RateLimitError(AgentGenerationError):
    """The provider gets more requests than it allows."""


class ModelTimeoutError(AgentGenerationError):
    """The provider was silent for longer than it may be."""


class AgentStoppedError(AgentError):
    """The run was ended from outside. What it had done is in the memory, and in `result`.

    Attributes:
        state: How the run ended, as `RunResult.state` says it.
        result: The `RunResult` of what was done, without an output; None until the run has ended.
    """

    state: Literal["stopped", "interrupted", "limit_error"] = "stopped"
    result: Any = None  # a RunResult is not known down here


class AgentInterruptedError(AgentStoppedError):
    """Somebody called `interrupt`."""

    state = "interrupted"


class AgentLimitError(AgentStoppedError):
    """The next thing to do would go beyond a limit of the run, so it was not done."""

    state = "limit_error"


class SandboxError(Exception):
    """Base of every error of the code-execution layer.

    Args:
        message: What happened and what to do about it.
        logs: What the code had printed until then.

    Attributes:
        run: The `Run` that it has ended; see `AgentError`.
    """

    __slots__ = ("run",)

    run: Any

    def __init__(self, message: str, logs: str = "") -> None:
        self.run = None
        self.message = visible(str(message))
        super().__init__(self.message)
        self.logs = logs

    def dict(self) -> builtins.dict[str, str]:
        """Returns the JSON form: ``{"type": class name, "message": text, "logs": text}``."""
        return {"type": type(self).__name__, "message": str(self), "logs": self.logs}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "SandboxError":
        """Loads what `dict` wrote; a class that is not the library's becomes `SandboxError`."""
        kind = _KINDS.get(str(data.get("type")), SandboxError)
        kind = kind if issubclass(kind, SandboxError) else SandboxError
        return kind(str(data.get("message", "")), str(data.get("logs", "")))


class InterpreterError(SandboxError):
    """The code raised; the message is the traceback through the code's own lines."""


class SandboxLimitExceeded(SandboxError):  # noqa: N818 - the condition is the field's name for it
    """The code used up more than it may: disk, threads, time."""


class SandboxTimeout(SandboxLimitExceeded):
    """The code ran longer than it may, or took more of the processor."""


class SandboxCrashed(SandboxError):  # noqa: N818 - as above
    """The interpreter died while it ran the code; its variables are gone."""


class SandboxViolation(SandboxError):  # noqa: N818 - as above
    """The sandbox sent what the protocol does not allow, and was killed."""


class SandboxUnavailable(SandboxError):  # noqa: N818 - as above
    """This machine cannot enforce the walls that were asked for."""


class MissingExtraError(ImportError):
    """An optional package is needed and not installed.

    Args:
        feature: What the caller wanted to use, such as ``"OpenAIModel"``.
        extra: The extra of the `sanderling` distribution that brings it.
        package: The import name that was not found.
    """

    def __init__(self, feature: str, extra: str, package: str) -> None:
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed. "
            f"Install it with: {install_command(extra)}",
            name=package,
        )
        self.feature = feature
        self.extra = extra


def install_command(extra: str) -> str:
    """Returns the command that installs an extra of the `sanderling` distribution."""
    return f"pip install 'sanderling[{extra}]'"


def is_error_name(name: object) -> bool:
    """Returns whether one of the error classes of this page has a name."""
    return name in _KINDS


_KINDS: dict[str, type[AgentError] | type[SandboxError]] = {
    kind.__name__: kind
    for kind in (
        AgentError,
        AgentParsingError,
        AgentExecutionError,
        AgentToolCallError,
        AgentToolExecutionError,
        AgentMaxStepsError,
        AgentGenerationError,
        ModelAccessError,
        UnknownModelError,
        ContextLengthError,
        ContentFilterError,
        RateLimitError,
        ModelTimeoutError,
        AgentStoppedError,
        AgentInterruptedError,
        AgentLimitError,
        SandboxError,
        InterpreterError,
        SandboxLimitExceeded,
        SandboxTimeout,
        SandboxCrashed,
        SandboxViolation,
        SandboxUnavailable,
    )
}
