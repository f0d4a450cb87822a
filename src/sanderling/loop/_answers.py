"""Answers of a given type: described to the model as JSON schema, read from what it gives."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sanderling import sandbox
from sanderling.errors import AgentError, MissingExtraError

from ._parsing import without_thinking

if TYPE_CHECKING:
    from pydantic import ValidationError

    from sanderling.messages import JSONObject

T = TypeVar("T")
MAX_PROBLEMS = 10
MAX_SHOWN = 200
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)


class _MisfitError(ValueError):
    """A value is not of the type; its text says why, a line for each problem."""


@dataclass(frozen=True)
class AnswerType(Generic[T]):
    """What an answer has to be.

    Attributes:
        schema: Its JSON schema.
        convert: Returns a value as one of the type; raises a `ValueError` for one that is not.
    """

    schema: JSONObject
    convert: Callable[[object], T]

    @classmethod
    def of(cls, output_type: Any) -> AnswerType[Any]:
        """Describes a type.

        Args:
            output_type: Anything that pydantic can validate (a model, a dataclass, a typed dict, a
                plain type such as ``list[int]``), or a JSON schema as a dict.

        Raises:
            TypeError: Nobody can say what its values look like.
            MissingExtraError: It is a JSON schema, and the package that checks those is missing.
        """
        if isinstance(output_type, Mapping):
            return _from_schema(dict(output_type))
        return _from_type(output_type)

    @property
    def schema_text(self) -> str:
        """The JSON schema as text, for the model."""
        return json.dumps(self.schema, ensure_ascii=False)

    def read(self, value: object) -> T:
        """Returns an answer as a value of the type.

        JSON text is taken for what it spells; a `Record` or a dataclass of another class, such as
        the model's code has defined, for its fields.

        Raises:
            AgentError: It does not fit; the message tells the model why, and what would.
        """
        try:
            return self.convert(value)
        except ValueError as error:
            misfit = error
        if isinstance(value, str):
            try:
                return self.convert(json.loads(value))
            except (ValueError, RecursionError):
                pass  # the first error speaks of what the model gave
        else:
            try:
                return self.convert(_by_fields(value))
            except ValueError as error:
                misfit = error
        raise self._refused(misfit)

    def read_text(self, text: str) -> T:
        """Returns an answer that a model wrote as text: JSON, alone or among other words.

        Raises:
            AgentError: It does not fit.
        """
        text = without_thinking(text).strip()
        refused: AgentError | None = None
        for candidate in (text, *_json_in(text)):
            try:
                return self.read(candidate)
            except AgentError as error:
                refused = refused or error
        raise refused or self._refused(_MisfitError("there is no text"))

    def _refused(self, error: Exception) -> AgentError:
        return AgentError(
            f"The final answer does not fit what is wanted:\n{sandbox.error_text(error)}\n"
            f"It has to be a value of this JSON schema: {self.schema_text}"
        )


def _by_fields(value: object) -> object:
    match value:
        case sandbox.Record():
            return _by_fields(value.record_fields)
        case dict():
            return {key: _by_fields(one) for key, one in value.items()}
        case list():
            return [_by_fields(one) for one in value]
        case tuple():
            return tuple(_by_fields(one) for one in value)
    if sandbox.stays_on_host(value):
        return value
    models = sys.modules.get("pydantic.main")  # where it is not loaded, no value is a model
    if models is not None and isinstance(value, models.BaseModel):
        return {name: _by_fields(one) for name, one in vars(value).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _by_fields(getattr(value, one.name)) for one in dataclasses.fields(value)}
    return value


def _json_in(text: str) -> Iterable[str]:
    yield from _FENCED.findall(text)
    starts = [place for place in (text.find("{"), text.find("[")) if place != -1]
    if starts:
        start, end = min(starts), max(text.rfind("}"), text.rfind("]"))
        yield text[start : end + 1]


def _first_sentence(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(". ")[0].rstrip(".")


def _from_type(output_type: Any) -> AnswerType[Any]:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    from sanderling.tools import inline_references

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_readable(output_type))
        schema = inline_references(adapter.json_schema())
    except (PydanticUserError, PydanticSchemaGenerationError, NameError) as error:
        raise TypeError(
            f"output_type={output_type!r} cannot be described: {_first_sentence(error)}. Use a "
            "pydantic model, a dataclass, a TypedDict, a plain type such as list[int], or a "
            "JSON schema."
        ) from error

    def convert(value: object) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            raise _MisfitError(_problems(error)) from None

    return AnswerType(schema, convert)


def _readable(output_type: Any) -> Any:
    """Returns a typed dict in the form that pydantic insists on before Python 3.12."""
    if not typing.is_typeddict(output_type) or type(output_type).__module__ != "typing":
        return output_type
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    required = output_type.__required_keys__
    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(output_type, include_extras=True).items():
        is_marked = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
        marker = typing.Required if name in required else typing.NotRequired
        fields[name] = hint if is_marked else marker[hint]
    return make(output_type.__name__, fields)


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False)
    lines = [
        f"- {''.join(f'[{step!r}]' for step in problem['loc']) or 'the answer'}: {problem['msg']}"
        + ("" if problem["type"] == "missing" else f", but it is {_shown(problem['input'])}")
        for problem in problems[:MAX_PROBLEMS]
    ]
    more = len(problems) - MAX_PROBLEMS
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def _from_schema(schema: JSONObject) -> AnswerType[Any]:
    try:
        import jsonschema
    except ImportError:
        raise MissingExtraError(
            "an output_type that is a JSON schema", "schema", "jsonschema"
        ) from None

    validator_class = jsonschema.validators.validator_for(schema)
    try:
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise TypeError(f"output_type is not a valid JSON schema: {error.message}") from error
    # What code answers with may hold tuples, which are JSON's arrays as lists are.
    types = validator_class.TYPE_CHECKER.redefine(
        "array", lambda _, value: isinstance(value, list | tuple)
    )
    extend: Any = jsonschema.validators.extend
    validator = extend(validator_class, type_checker=types)(schema)

    def convert(value: object) -> Any:
        lines = []
        for problem in validator.iter_errors(sandbox.without_objects(value)):
            path = "".join(f"[{step!r}]" for step in problem.absolute_path)
            lines.append(f"- {path or 'the answer'}: {problem.message[:MAX_SHOWN]}")
            if len(lines) == MAX_PROBLEMS:
                break
        if lines:
            raise _MisfitError("\n".join(lines))
        return value

    return AnswerType(schema, convert)


def _shown(value: object) -> str:
    text = sandbox.safe_repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
