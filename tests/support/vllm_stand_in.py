"""As much of vLLM 0.33.0 as `VLLMModel` uses, where its weights do not fit: names, arguments and
outputs are those of `vllm.AsyncLLMEngine` and `vllm.SamplingParams`.
"""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar


class RequestOutputKind(enum.Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class StructuredOutputsParams:
    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None

    def __post_init__(self) -> None:
        given = [self.json, self.regex, self.choice, self.grammar, self.json_object]
        if sum(each is not None for each in given) != 1:
            raise ValueError("exactly one kind of structured outputs constraint")


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = 16
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    structured_outputs: StructuredOutputsParams | None = None


@dataclass
class AsyncEngineArgs:
    model: str
    max_model_len: int | None = None
    tensor_parallel_size: int = 1


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    finish_reason: str | None = None


@dataclass
class RequestOutput:
    request_id: str
    prompt_token_ids: list[int] | None
    outputs: list[CompletionOutput]
    finished: bool
    num_cached_tokens: int | None = None


@dataclass
class AsyncLLMEngine:
    """Says its pieces, one token each; begins again after the last if it is `endless`."""

    args: AsyncEngineArgs
    asked: list[tuple[list[int], SamplingParams]] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    loops: set[asyncio.AbstractEventLoop] = field(default_factory=set)
    gone: threading.Event = field(default_factory=threading.Event)

    tokenizer: ClassVar[Any]
    pieces: ClassVar[list[str]]
    endless: ClassVar[bool] = False
    together: ClassVar[asyncio.Barrier | None] = None
    closings: ClassVar[list[str]] = []

    @classmethod
    def from_engine_args(cls, engine_args: AsyncEngineArgs) -> AsyncLLMEngine:
        if engine_args.model == "nothing":
            raise OSError("nothing is not a local folder")
        return cls(engine_args)

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    async def generate(
        self, prompt: Mapping[str, Any], sampling_params: SamplingParams, request_id: str
    ) -> AsyncGenerator[RequestOutput, None]:
        assert sampling_params.output_kind is RequestOutputKind.DELTA
        tokens = prompt["prompt_token_ids"]
        self.asked.append((tokens, sampling_params))
        self.loops.add(asyncio.get_running_loop())
        if self.together is not None:
            await self.together.wait()
        most = sampling_params.max_tokens or len(self.pieces)
        said = self.pieces * (most if self.endless else 1)
        try:
            for place, text in enumerate(said[:most]):
                await asyncio.sleep(0)
                last = place + 1 == min(most, len(said))
                finish = ("length" if most < len(said) else "stop") if last else None
                reply = CompletionOutput(0, text, [place], finish)
                yield RequestOutput(request_id, tokens, [reply], last, num_cached_tokens=5)
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted.append(request_id)
            self.gone.set()
            raise

    def __del__(self) -> None:
        type(self).closings.append(self.args.model)


def modules() -> dict[str, ModuleType]:
    """Returns the modules by name, for `sys.modules`."""
    vllm, sampling = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    vars(vllm).update(
        AsyncEngineArgs=AsyncEngineArgs,
        AsyncLLMEngine=AsyncLLMEngine,
        SamplingParams=SamplingParams,
    )
    vars(sampling).update(
        RequestOutputKind=RequestOutputKind,
        SamplingParams=SamplingParams,
        StructuredOutputsParams=StructuredOutputsParams,
    )
    return {"vllm": vllm, "vllm.sampling_params": sampling}
