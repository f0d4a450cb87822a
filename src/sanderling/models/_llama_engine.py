"""Loaded models of llama.cpp, shared by all that use the same file in the same way."""

from __future__ import annotations

import os
import queue
import secrets
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sanderling.errors import AgentGenerationError, ContextLengthError, MissingExtraError

from ._shared import shared
from ._worker import Worker


class _Server(Protocol):
    """What is used of `xllamacpp.Server`."""

    def handle_completions(
        self, request: Mapping[str, Any], receive: Callable[[Any], bool], /
    ) -> object:
        """Does the same with a bare text in the place of a conversation."""

    def handle_chat_completions(
        self, request: Mapping[str, Any], receive: Callable[[Any], bool], /
    ) -> object:
        """Calls `receive` with each chunk, until it returns true or the reply is complete."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a model file is loaded.

    Attributes:
        path: The GGUF file.
        n_ctx: How many tokens a conversation may have, the reply included; 0 for as many as the
            model was trained for.
        n_threads: By default `writing_threads` and `reading_threads`.
        chat_template: Jinja; by default the one in the file.
    """

    path: Path
    n_ctx: int
    n_threads: int | None = None
    chat_template: str | None = None


class Engine:
    """A loaded model. Requests of several threads wait for each other."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._server = _load(settings)
        self._worker = Worker("sanderling-llama")

    def stream(self, request: Mapping[str, Any]) -> Generator[object, None, None]:
        """Yields the chunks of a streamed chat completion; closing stops the model.

        Raises:
            AgentGenerationError: llama.cpp refuses the request.
        """
        cancelled = threading.Event()

        def work(put: Callable[[object], None]) -> None:
            def receive(chunk: object) -> bool:
                put(chunk)
                return cancelled.is_set()

            self._server.handle_chat_completions(dict(request), receive)

        try:
            with closing(self._worker.pump(work, cancelled)) as chunks:
                for chunk in chunks:
                    if isinstance(chunk, Mapping) and "error" in chunk:
                        raise self._refusal(chunk["error"])
                    yield chunk
        except (RuntimeError, TypeError, ValueError) as error:
            raise AgentGenerationError(f"llama.cpp cannot take this request: {error}") from error

    def _refusal(self, error: object) -> AgentGenerationError:
        said = error if isinstance(error, Mapping) else {"message": error}
        if said.get("type") == "exceed_context_size_error":
            return ContextLengthError(
                f"The conversation has {said.get('n_prompt_tokens')} tokens, and "
                f"{self._settings.path.name} was loaded for {said.get('n_ctx')}. Give "
                "LlamaCppModel a larger n_ctx, or shorten what steps print."
            )
        return AgentGenerationError(f"llama.cpp refused the request: {said.get('message')}")


_FIRST = {"prompt": "1", "n_predict": 1}


def engine(settings: EngineSettings) -> Engine:
    """Returns the engine with these settings, loaded if nobody uses it yet.

    Raises:
        MissingExtraError: The package `xllamacpp` is not installed.
        AgentGenerationError: llama.cpp cannot load the file.
    """
    return shared(Engine, repr(settings), lambda: Engine(settings))


def writing_threads() -> int:
    """Returns half of the cores that this process may use.

    The threads of llama.cpp wait for each other in a loop, many times for each token. Where another
    process takes the core of one of them, all stand still: on a machine under load, fewer threads
    are several times faster.
    """
    return max(1, _cores() // 2)


def reading_threads() -> int:
    """Returns how many cores are idle, and at least `writing_threads`.

    A prompt is read in large pieces, for which idle cores save time; busy ones double it.
    """
    try:
        busy = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows does not count them
        busy = 0.0
    return max(writing_threads(), _cores() - round(busy))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load(settings: EngineSettings) -> _Server:
    try:
        import xllamacpp  # type: ignore[import-untyped]  # written in Cython, without stubs
    except ModuleNotFoundError as error:
        raise MissingExtraError("LlamaCppModel", "llamacpp", "xllamacpp") from error
    except ImportError as error:
        raise AgentGenerationError(
            f"The package xllamacpp is installed, but cannot be loaded: {error}. It needs the "
            "OpenMP runtime of the system; on Debian: apt-get install libgomp1"
        ) from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = os.fspath(settings.path)
    parameters.n_ctx = settings.n_ctx
    parameters.cpuparams.n_threads = settings.n_threads or writing_threads()
    parameters.cpuparams_batch.n_threads = settings.n_threads or reading_threads()
    if settings.chat_template is not None:
        parameters.chat_template = settings.chat_template
    parameters.verbosity = -1
    parameters.warmup = False
    parameters.fit_params = False
    # The server also listens on a port of this machine. Nobody shall use it.
    parameters.api_keys = [secrets.token_urlsafe(32)]
    try:
        return _started(lambda: xllamacpp.Server(parameters))
    except RuntimeError as error:
        raise AgentGenerationError(
            f"llama.cpp cannot load {settings.path} ({error}). The file may be damaged, of a newer "
            f"format than this version of xllamacpp reads, or too large for the memory with "
            f"n_ctx={settings.n_ctx}."
        ) from error


def _started(make: Callable[[], _Server]) -> _Server:
    """Makes a server, and returns it when it is at work.

    A server of xllamacpp that is ended before its loop has begun waits for that loop for ever. So
    it answers a first request here; and as Ctrl-C in the wrong moment would end it, it is made in
    another thread than the one that Ctrl-C interrupts.
    """
    made: queue.SimpleQueue[_Server | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            server = make()
            server.handle_completions(_FIRST, lambda _: True)
        except Exception as error:  # raised where the server is waited for
            made.put(error)
        else:
            made.put(server)

    thread = threading.Thread(target=work, name="sanderling-llama-load", daemon=True)
    thread.start()
    try:
        outcome = made.get()
    finally:
        thread.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
