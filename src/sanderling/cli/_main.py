"""Runs what the command line describes: an agent, or a command that tells about this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sanderling import sandbox
from sanderling._show import text_of
from sanderling.console import AgentLogger, LogLevel
from sanderling.errors import AgentError, MissingExtraError, SandboxError

from ._arguments import DOCTOR, Arguments, asked_command, asks_json, read_arguments

if TYPE_CHECKING:
    from sanderling.agents import MultiStepAgent
    from sanderling.models import Model

DEBUG = "SANDERLING_DEBUG"
FAILED, STEPS_USED_UP, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the console command.

    Args:
        argv: The arguments after the command's name; by default those of this process.

    Returns:
        The exit status: 0, 1 after an error or where a wall does not hold, 2 where the steps were
        used up and the answer was forced, 130 after Ctrl-C.

    Raises:
        SystemExit: The arguments are wrong (status 2), or ask for help or the version (0).
    """
    command = _command(sys.argv[1:] if argv is None else argv)
    try:
        status = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # Who read our output has gone; Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        _complain(_told(error))
        return FAILED
    return status


def _command(argv: Sequence[str]) -> Callable[[], int]:
    command = asked_command(argv)
    if command is None:
        return partial(_run, read_arguments(argv))
    as_json = asks_json(command, argv[1:])
    if command == DOCTOR:
        from ._doctor import doctor

        return partial(doctor, as_json=as_json)
    from ._models import models

    return partial(models, as_json=as_json)


def _run(arguments: Arguments) -> int:
    from sanderling.models import choose_model

    logger = AgentLogger(LogLevel(arguments.verbosity_level))
    model, reason = choose_model(
        model_type=arguments.model_type,
        model_id=arguments.model_id,
        model_path=arguments.model_path,
        api_base=arguments.api_base,
        api_key=arguments.api_key,
    )
    logger.log(reason, style="dim")
    with _warnings_shown(logger.level), _agent(arguments, model, logger) as agent:
        result = agent.run(arguments.task, return_full_result=True)
    if not logger.shows(LogLevel.INFO):
        _print_bare(sandbox.safe_str(result.output))
    if result.state == "max_steps_error":
        _complain(
            f"sanderling: the {arguments.max_steps} steps were used up before there was an answer. "
            "The one above was asked for then: --max-steps N gives it more."
        )
        return STEPS_USED_UP
    return 0


def _agent(arguments: Arguments, model: Model, logger: AgentLogger) -> MultiStepAgent:
    from sanderling.agents import CodeAgent, ToolCallingAgent

    if arguments.action_type == "tool_calling":
        return ToolCallingAgent(
            tools=[],
            model=model,
            max_steps=arguments.max_steps,
            logger=logger,
            stream_outputs=arguments.stream,
        )
    return CodeAgent(
        tools=[],
        model=model,
        additional_authorized_imports=arguments.imports,
        executor_type=arguments.executor_type,
        max_steps=arguments.max_steps,
        logger=logger,
        stream_outputs=arguments.stream,
    )


def _print_bare(answer: str) -> None:
    """Prints an answer for whoever reads it: a person safely, a program byte by byte."""
    if sys.stdout.isatty():
        AgentLogger().log(answer)
    else:
        encoding = sys.stdout.encoding
        print(answer.encode(encoding, "backslashreplace").decode(encoding))


class _OnStandardError(logging.Handler):
    """Shows log records on standard error, from `LogLevel.INFO` on."""

    def __init__(self, level: LogLevel | int) -> None:
        super().__init__()
        self._logger = _standard_error(level)

    def emit(self, record: logging.LogRecord) -> None:
        self._logger.log(f"sanderling: {record.getMessage()}", style="yellow")


@contextlib.contextmanager
def _warnings_shown(level: LogLevel | int) -> Iterator[None]:
    """Shows what the library warns of, such as that a model is asked again."""
    handler = _OnStandardError(level)
    log = logging.getLogger("sanderling")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _standard_error(level: LogLevel | int = LogLevel.INFO) -> AgentLogger:
    from rich.console import Console

    return AgentLogger(level, Console(stderr=True, highlight=False))


def _complain(message: str) -> None:
    _standard_error().log_error(message)


def _told(error: Exception) -> str:
    expected = (AgentError, SandboxError, MissingExtraError, OSError, ValueError)
    if isinstance(error, expected) and (text := text_of(error)):
        return f"sanderling: {text}"
    return (
        f"sanderling: unexpected {type(error).__name__}: {text_of(error)}\n"
        f"This looks like a fault of Sanderling itself; {DEBUG}=1 shows where it happened."
    )
