"""Reads a code action out of a reply, in whichever of the ways of writing one it came.

Code stands between marks in the text, in the JSON object that a structured reply is, or in a native
call: of a code tool that the provider's model was trained on, or of one of our functions as if they
were offered as tools.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sanderling._show import quoted
from sanderling.errors import AgentParsingError
from sanderling.models import parse_json_tool_calls, read_arguments

from ._channels import without_marks
from ._parsing import (
    CodeTags,
    extract_code,
    find_code,
    is_closed,
    without_half_a_mark,
    without_thinking,
)

if TYPE_CHECKING:
    from sanderling.messages import ChatMessage, ChatMessageToolCall, JSONObject

CODE_TOOLS = ("python_interpreter", "python", "code_interpreter", "ipython")
FINAL_ANSWER = "final_answer"

STRUCTURED_REPLY: JSONObject = {
    "type": "json_schema",
    "json_schema": {
        "name": "thought_and_code",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "thought": {
                    "type": "string",
                    "description": "What you are about to do, and why, in one or two sentences.",
                },
                "code": {"type": "string", "description": "The Python code to run."},
            },
            "required": ["thought", "code"],
            "additionalProperties": False,
        },
    },
}
"""``response_format`` of a structured code action, as chat completions write it."""


@dataclass(frozen=True, slots=True)
class CodeReply:
    """A reply that is to be read as a code action.

    Attributes:
        text: As the model will read it again: without thinking, and in the form it was asked for.
        cut_off: Whether the model ran out of tokens.
        native: The code of native calls, where the reply made some.
        was_stopped: Whether the last block was still open, as the stop sequence leaves it.
    """

    text: str
    cut_off: bool
    native: str | None = None
    was_stopped: bool = False

    @classmethod
    def of(cls, reply: ChatMessage, tags: CodeTags, *, structured: bool = False) -> CodeReply:
        """Takes a reply as it came.

        Args:
            reply: The reply.
            tags: The marks that were asked for.
            structured: Whether a JSON object was asked for.
        """
        reply = without_marks(reply)
        cut_off = reply.finish_reason == "length"
        text = without_thinking(reply.text)
        native = _code_of_calls(reply.tool_calls or ())
        was_stopped = False
        if native is not None:
            if structured:
                text = json.dumps({"thought": text, "code": native}, ensure_ascii=False)
            else:
                text = f"{text}\n{tags.opening}\n{native}\n{tags.closing}".lstrip()
        elif not cut_off and not structured and not is_closed(text, tags):
            # The stop sequence took the mark away; without it the model unlearns to write it.
            text = without_half_a_mark(text, tags) + tags.closing
            was_stopped = True
        return cls(text, cut_off, native, was_stopped)

    def code(self, tags: CodeTags, *, structured: bool = False) -> str:
        """Returns the code.

        Raises:
            AgentParsingError: There is none; the message shows the model how to write it.
        """
        if self.native is not None and not self.cut_off:
            return self.native
        if self.native is not None:
            raise AgentParsingError("The call was cut off before its end.")
        if structured:
            return self._structured(tags)
        is_object = self.text.lstrip().startswith("{")  # whose texts may hold marks
        found = _code_of_object(self.text, tags) if is_object else None
        found = found or find_code(self.text, tags, cut_off=self.cut_off)
        if found is None and not self.cut_off:
            found = _code_of_object(self.text, tags) or _code_of_calls(_written_calls(self.text))
        return found or extract_code(self.text, tags, cut_off=self.cut_off)

    def _structured(self, tags: CodeTags) -> str:
        code = _code_of_object(self.text, tags)
        if code is None and not self.cut_off:
            code = find_code(self.text, tags)  # the marks are understood all the same
        if code is None:
            raise AgentParsingError(
                f"Your reply is not the JSON object that is wanted. {quoted(self.text)}\n"
                'Reply with one object and nothing else: {"thought": "what you do and why", '
                '"code": "final_answer(...)"}'
            )
        return code


def _code_of_object(text: str, tags: CodeTags) -> str | None:
    """Returns the value of ``"code"`` in the first JSON object of a text, if there is one."""
    brace = text.find("{")
    if brace == -1:
        return None
    try:
        # Models write line ends as they are, where JSON wants them escaped.
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, brace)
    except (ValueError, RecursionError):
        return None
    code = value.get("code") if isinstance(value, dict) else None
    if not isinstance(code, str) or not code.strip():
        return None
    marked = code.lstrip().startswith((tags.opening, "```", "<code>"))
    return (find_code(code, tags) if marked else None) or code.strip("\n").rstrip()


def _written_calls(text: str) -> list[ChatMessageToolCall]:
    """Returns the calls that a text writes as JSON, if they are calls without doubt."""
    try:
        calls = parse_json_tool_calls(text)
    except AgentParsingError:
        return []
    return [
        call
        for call in calls
        if call.function.name in (*CODE_TOOLS, FINAL_ANSWER)
        or (isinstance(call.function.arguments, Mapping) and call.function.arguments)
    ]


def _code_of_calls(calls: Sequence[ChatMessageToolCall]) -> str | None:
    """Returns Python that does what the calls ask for; `None` if that cannot be said."""
    lines = [_code_of_call(call, is_last=call is calls[-1]) for call in calls]
    return "\n".join(line for line in lines if line is not None) or None


def _code_of_call(call: ChatMessageToolCall, *, is_last: bool) -> str | None:
    name, arguments = call.function.name, read_arguments(call)
    if name in CODE_TOOLS:
        code = _only_text(arguments)
        return code if code and code.strip() else None
    names = [name, *arguments] if isinstance(arguments, Mapping) else []
    if not names or not all(isinstance(one, str) and _is_name(one) for one in names):
        return None
    called = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    return called if is_last or name == FINAL_ANSWER else f"print({called})"


def _only_text(arguments: Any) -> str | None:
    """Returns the code among the arguments of a code tool, whatever the parameter is called."""
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        return None
    texts = [value for value in arguments.values() if isinstance(value, str)]
    code = arguments.get("code", texts[0] if len(texts) == 1 else None)
    return code if isinstance(code, str) else None


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
