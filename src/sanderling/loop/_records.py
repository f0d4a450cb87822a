"""The JSON form of effects and events, and the way back."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar

from sanderling import sandbox
from sanderling.errors import AgentError, SandboxError, is_error_name
from sanderling.memory import (
    FORM,
    FORMAT_VERSION,
    WITH_FORM,
    Form,
    MemoryStep,
    ToolCall,
    check_version,
    exact_form,
    forms_of,
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
        """Returns the JSON form, with the class name under ``"type"``, and a ``"version"``.

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
            ValueError: The data is of another class, or broken, or a newer version has written it.
        """
        return fields_of(cls, data)


WITH_FORM.append(Record)


def fields_form(
    record: DataclassInstance, write: Write, declared: Mapping[str, Form] | None = None
) -> JSONObject:
    """Returns the JSON form of a dataclass.

    Args:
        record: The dataclass.
        write: How values that may be anything are written.
        declared: The forms of fields whose class does not declare them.
    """
    form: JSONObject = {"type": type(record).__name__, "version": FORMAT_VERSION}
    for name, way in {**forms_of(type(record)), **(declared or {})}.items():
        form[name] = way.write(getattr(record, name), write)
    return form


def fields_of(
    kind: type[RecordT], data: Mapping[str, Any], declared: Mapping[str, Form] | None = None
) -> RecordT:
    """Makes what `fields_form` described; see `Record.from_dict`.

    Raises:
        ValueError: The data is of another class, or broken, or a newer version has written it.
    """
    forms = {**forms_of(kind), **(declared or {})}
    try:
        if data["type"] != kind.__name__:
            raise ValueError(f"it is of the type {data['type']!r:.80}")
        check_version(data, kind.__name__)
        return kind(
            **{name: forms[name].read(form) for name, form in data.items() if name in forms}
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no {kind.__name__}: {type(error).__name__}: {error}") from error


def code_result_to_dict(result: CodeResult, *, exact: bool = False) -> JSONObject:
    """Returns what came of code as JSON: the reply to `ExecuteCode`, as a journal keeps it.

    Args:
        result: The result.
        exact: See `Record.dict`.
    """
    return fields_form(result, exact_form if exact else json_form, _CODE_RESULT)


def code_result_from_dict(data: Mapping[str, Any]) -> CodeResult:
    """Makes the result that `code_result_to_dict` described; see `Record.from_dict`.

    Raises:
        ValueError: The data is something else, or broken.
    """
    from sanderling.sandbox import CodeResult

    return fields_of(CodeResult, data, _CODE_RESULT)


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
    if not is_error_name(form["type"]):
        return RuntimeError(f"{form['type']}: {form['message']}")
    error = AgentError.from_dict(form)
    return error if type(error).__name__ == form["type"] else SandboxError.from_dict(form)


def _name(value: object, _: Write) -> JSONValue:
    return str(value)


def _name_of(form: object) -> str:
    if not isinstance(form, str):
        raise TypeError(f"a name is a text, not {form!r:.80}")
    return form


ERROR: Final = {FORM: Form(_error_form, _error_of)}
IMAGES: Final = {FORM: Form(image_forms, lambda forms: tuple(images_of(forms) or ()))}
MESSAGES: Final = {FORM: each(lambda message, _: message.dict(), ChatMessage.from_dict, list)}
NAMES: Final = {FORM: each(_name, _name_of)}
OPTIONS: Final = {FORM: Form(lambda options, write: write({**options}), value_of)}
STEP: Final = {FORM: Form(lambda step, write: step.form(write), MemoryStep.from_dict)}
TOOL_CALL: Final = {FORM: Form(lambda call, write: call.form(write), ToolCall.from_dict)}

_CODE_RESULT = {"error": ERROR[FORM]}
