"""The JSON form of effects and events, and the way back."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

from sanderling import sandbox
from sanderling.errors import AgentError, SandboxError
from sanderling.memory import (
    WITH_FORM,
    Form,
    MemoryStep,
    ToolCall,
    exact_form,
    image_forms,
    images_of,
    json_form,
    value_of,
)
from sanderling.messages import ChatMessage

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from sanderling.messages import JSONObject, JSONValue
    from sanderling.sandbox import CodeResult

    RecordT = TypeVar("RecordT", bound=DataclassInstance)

Write: TypeAlias = "Callable[[object], JSONValue]"


class Record:
    """Base of the dataclasses of this room; gives them their JSON form."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[builtins.dict[str, Field[Any]]]

    def dict(self, *, exact: bool = False) -> JSONObject:
        """Returns the JSON form, with the class name under ``"type"``.

        Args:
            exact: Write values so that `from_dict` rebuilds them, as `AgentMemory.to_json` does,
                and not so that they are easy to read.

        Raises:
            OSError: The file of an image cannot be read, and the form shall be exact.
        """
        return self.form(exact_form if exact else json_form)

    def form(self, write: Write) -> JSONObject:
        """Returns the JSON form; `write` says how values that may be anything are written."""
        return fields_form(self, write)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Makes what `dict` described; fields that are not known are left out.

        Nothing of the data is executed, unpickled or read as a path.

        Raises:
            ValueError: The data is of another class, or broken.
        """
        return fields_of(cls, data)


WITH_FORM.append(Record)


def fields_form(record: DataclassInstance, write: Write) -> JSONObject:
    """Returns the JSON form of a dataclass, with the class name under ``"type"``."""
    form: JSONObject = {"type": type(record).__name__}
    for field in fields(record):
        value = getattr(record, field.name)
        special = FORMS.get(field.name)
        form[field.name] = special.write(value, write) if special else write(value)
    return form


def fields_of(kind: type[RecordT], data: Mapping[str, Any]) -> RecordT:
    """Makes what `fields_form` described; see `Record.from_dict`.

    Raises:
        ValueError: The data is of another class, or broken.
    """
    try:
        if data["type"] != kind.__name__:
            raise ValueError(f"it is of the type {data['type']!r:.80}")
        known = {field.name for field in fields(kind)}
        return kind(
            **{
                name: FORMS[name].read(form) if name in FORMS else value_of(form)
                for name, form in data.items()
                if name in known
            }
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no {kind.__name__}: {type(error).__name__}: {error}") from error


def code_result_to_dict(result: CodeResult, *, exact: bool = False) -> JSONObject:
    """Returns what came of code as JSON: the reply to `ExecuteCode`, as a journal keeps it.

    Args:
        result: The result.
        exact: See `Record.dict`.
    """
    return fields_form(result, exact_form if exact else json_form)


def code_result_from_dict(data: Mapping[str, Any]) -> CodeResult:
    """Makes the result that `code_result_to_dict` described; see `Record.from_dict`.

    Raises:
        ValueError: The data is something else, or broken.
    """
    from sanderling.sandbox import CodeResult

    return fields_of(CodeResult, data)


def each(
    write: Callable[[Any, Write], JSONValue],
    read: Callable[[Any], Any],
    made: Callable[[Iterable[Any]], Sequence[Any]] = tuple,
) -> Form:
    """Returns the form of a sequence of things that are all written and read in one way."""

    def written(values: Sequence[Any], how: Write) -> JSONValue:
        return [write(value, how) for value in values]

    return Form(written, lambda forms: made(read(form) for form in forms))


def _error_form(error: Exception | None, _: Write) -> JSONValue:
    if error is None:
        return None
    if isinstance(error, AgentError | SandboxError):
        return {**error.dict()}
    return {"type": type(error).__name__, "message": sandbox.safe_str(error)}


def _error_of(form: Mapping[str, str] | None) -> Exception | None:
    """Returns an error; one that is not of a run stays such that it ends a run."""
    if form is None:
        return None
    for kind in (AgentError, SandboxError):
        error = kind.from_dict({**form})
        if type(error).__name__ == form["type"]:
            return error
    return RuntimeError(f"{form['type']}: {form['message']}")


def _name(value: object, _: Write) -> JSONValue:
    return str(value)


def _name_of(form: object) -> str:
    if not isinstance(form, str):
        raise TypeError(f"a name is a text, not {form!r:.80}")
    return form


FORMS: dict[str, Form] = {
    "error": Form(_error_form, _error_of),
    "images": Form(image_forms, lambda forms: tuple(images_of(forms) or ())),
    "messages": each(lambda message, _: message.dict(), ChatMessage.from_dict, list),
    "options": Form(lambda options, write: write({**options}), value_of),
    "step": Form(lambda step, write: step.form(write), MemoryStep.from_dict),
    "stop_sequences": each(_name, _name_of),
    "tool_call": Form(lambda call, write: call.form(write), ToolCall.from_dict),
    "tools": each(_name, _name_of),
}
"""How fields are written and read, where they are not just any value."""
