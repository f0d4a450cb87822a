"""Strategies that make what a memory holds."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

from sanderling.errors import AgentError
from sanderling.memory import (
    ActionStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)
from sanderling.messages import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ImagePart,
    MessageRole,
    TextPart,
    Timing,
    TokenUsage,
)

text = st.text(max_size=30)
number = st.floats(allow_nan=False, allow_infinity=False, width=32)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["a", "$", "type", "dict"]) | text, inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=2)
        | st.sets(st.integers() | text, max_size=1)  # the order of two is not kept
    ),
    max_leaves=8,
)
data_url = st.binary(min_size=1, max_size=20).map(
    lambda data: "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + data).decode()
)
images = st.none() | st.lists(data_url | st.just("https://example.org/cat.png"), max_size=2)
errors = st.none() | st.sampled_from(AgentError.__subclasses__()).flatmap(
    lambda kind: text.map(lambda said: kind(said))
)
usage = st.none() | st.builds(TokenUsage, *[st.integers(0, 2**60)] * 3)
timing = st.none() | st.builds(Timing, number, st.none() | number)
calls = st.builds(ToolCall, text, plain, text)
requests = st.builds(
    ChatMessageToolCall,
    st.builds(ChatMessageToolCallFunction, text | st.dictionaries(text, text, max_size=2), text),
    text,
)
parts = st.lists(text.map(TextPart) | data_url.map(ImagePart), max_size=3)
messages = st.builds(
    ChatMessage,
    st.sampled_from(MessageRole),
    content=st.none() | text | parts,
    tool_calls=st.none() | st.lists(requests, max_size=2),
    token_usage=usage,
    finish_reason=st.none() | text,
    reasoning=st.none() | text,
    tool_call_id=st.none() | text,
)
actions = st.builds(
    ActionStep,
    step_number=st.none() | st.integers(0, 99),
    timing=timing,
    tool_calls=st.none() | st.lists(calls, max_size=3),
    error=errors,
    model_output_message=st.none() | messages,
    model_output=st.none() | text,
    code_action=st.none() | text,
    observations=st.none() | text,
    observations_images=images,
    action_output=plain,
    token_usage=usage,
    is_final_answer=st.booleans(),
)
plans = st.builds(
    PlanningStep,
    plan=text,
    facts=st.none() | text,
    model_output_message=st.none() | messages,
    timing=timing,
    token_usage=usage,
)
steps = st.one_of(
    actions,
    plans,
    st.builds(TaskStep, text, images),
    st.builds(SystemPromptStep, text),
    st.builds(FinalAnswerStep, plain),
)
