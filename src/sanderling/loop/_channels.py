"""Replies whose server has left the model's own marks in the text.

Of gpt-oss these are channels (https://github.com/openai/harmony), of Llama 3 a tag before code
(https://github.com/meta-llama/llama-models, prompt format of 3.1).
"""

from __future__ import annotations

import re
from dataclasses import replace

from sanderling.messages import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

_CHANNEL = "<|channel|>"
_PYTHON_TAG = "<|python_tag|>"
_SEGMENT = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]*))?<\|channel\|>(?P<header>[^<]*)<\|message\|>"
    r"(?P<body>.*?)(?=<\|(?:end|call|return|start|channel)\|>|\Z)",
    re.DOTALL,
)
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?(\w+)")
_END = re.compile(r"<\|(?:eom_id|eot_id|end)\|>")


def without_marks(reply: ChatMessage) -> ChatMessage:
    """Returns a reply with what its marks say: the text meant to be read, and the calls.

    A reply without such marks is returned as it is.
    """
    text = reply.text
    if _CHANNEL in text:
        said, calls = _segments(text)
    elif _PYTHON_TAG in text:
        said, _, code = text.partition(_PYTHON_TAG)
        calls = [_call("python", _END.split(code)[0])]
    else:
        return reply
    return replace(reply, content=said.strip(), tool_calls=reply.tool_calls or calls or None)


def _segments(text: str) -> tuple[str, list[ChatMessageToolCall]]:
    said: list[str] = []
    calls: list[ChatMessageToolCall] = []
    for segment in _SEGMENT.finditer(text):
        header, body = f"{segment['role'] or ''} {segment['header']}", segment["body"].strip()
        if recipient := _RECIPIENT.search(header):
            calls.append(_call(recipient[1], body))
        elif not segment["header"].lstrip().startswith("analysis"):
            said.append(body)
    return "\n".join(said), calls


def _call(name: str, arguments: str) -> ChatMessageToolCall:
    return ChatMessageToolCall(ChatMessageToolCallFunction(arguments.strip(), name), id="")
