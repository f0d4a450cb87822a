"""What can be said on the command line."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sanderling import __version__

EXAMPLE = 'sanderling "What is the 20th Fibonacci number?"'
DOCTOR, MODELS = "doctor", "models"
_DESCRIPTIONS = {
    DOCTOR: "Tell which walls this machine has around the code, try each of them, and tell where "
    "code can run and which models can be used.",
    MODELS: "Tell which models can be used on this machine now, how, and what the others lack. "
    "Looks for packages, for servers on this machine and for keys in the environment; no provider "
    "is asked, and no key is shown.",
}
_STATUSES = {
    DOCTOR: "0 if all required walls are there and hold, otherwise 1",
    MODELS: "0 if there is one, otherwise 1",
}
_MODULE = re.compile(r"\*|[^\W\d]\w*(\.[^\W\d]\w*)*(\.\*)?")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The command line, read; the attributes are the options by name."""

    task: str
    model_type: str | None
    model_id: str | None
    model_path: str | None
    api_base: str | None
    api_key: str | None
    imports: tuple[str, ...]
    action_type: str
    executor_type: str
    max_steps: int
    verbosity_level: int
    stream: bool


def read_arguments(argv: Sequence[str] | None = None) -> Arguments:
    """Reads the command line, and the task from standard input where it is to come from there.

    Raises:
        SystemExit: ``--help`` or ``--version`` was asked for (status 0), or something is wrong
            (status 2, with a message on standard error).
    """
    parser = _parser()
    given = parser.parse_intermixed_args(argv)
    task, imports = " ".join(given.task), list(given.imports)
    if not task and imports and not _MODULE.fullmatch(imports[-1]):
        task = imports.pop()  # it stood behind --imports, which takes all words
    for name in imports:
        if not _MODULE.fullmatch(name):
            parser.error(f"argument --imports: {name!r} is no name of a module")
    _check_no_command(parser, sys.argv[1:] if argv is None else argv)
    if task == "-" or not (task or sys.stdin is None or sys.stdin.isatty()):
        task = sys.stdin.read()
    if not task.strip():
        hint = " If it stands behind --imports, put it before the options." if imports else ""
        parser.error(f"there is no task. Say what is to be done: {EXAMPLE}{hint}")
    return Arguments(
        task=task.strip(),
        model_type=given.model_type,
        model_id=given.model_id,
        model_path=given.model_path,
        api_base=given.api_base,
        api_key=given.api_key,
        imports=tuple(imports),
        action_type=given.action_type,
        executor_type=given.executor_type,
        max_steps=given.max_steps,
        verbosity_level=-1 if given.quiet else given.verbosity_level,
        stream=not given.no_stream,
    )


def asked_command(argv: Sequence[str]) -> str | None:
    """Returns the command that the line is, with nothing but options behind it; else it is a task.

    More words, or ``--`` before it, make it a task.
    """
    options = [word for word in argv[1:] if word.startswith("-")]
    command = argv[0] if argv else None
    return command if command in _DESCRIPTIONS and list(argv) == [command, *options] else None


def asks_json(command: str, options: Sequence[str]) -> bool:
    """Reads what follows a command; returns whether JSON is wanted.

    Raises:
        SystemExit: ``--help`` was asked for (status 0), or something is wrong (status 2).
    """
    parser = argparse.ArgumentParser(
        prog=f"sanderling {command}",
        description=_DESCRIPTIONS[command],
        epilog=f"The exit status is {_STATUSES[command]}. "
        f"A task that is this one word goes behind two dashes: sanderling -- {command}",
    )
    parser.add_argument("--json", action="store_true", help="print the same as data")
    return bool(parser.parse_args(options).json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sanderling",
        description="Solve a task with an agent that acts by writing Python, run in a sandbox.",
        epilog="Without options for the model it is chosen from what is there: keys in the "
        "environment, a saved token of the Hub, a local server, the embedded model. "
        "SANDERLING_DEBUG=1 shows tracebacks. The exit status is 0, 1 after an error, 2 where the "
        "line is wrong or the steps were used up before there was an answer, 130 after Ctrl-C. "
        f"'sanderling {DOCTOR}' tells whether the sandbox holds on this machine, 'sanderling "
        f"{MODELS}' which models can be used.",
    )
    parser.add_argument("task", nargs="*", help="what is to be done; '-' reads standard input")
    parser.add_argument("--version", action="version", version=f"sanderling {__version__}")

    model = parser.add_argument_group("model")
    model.add_argument(
        "--model-type", metavar="CLASS", help="such as OpenAIModel or AnthropicModel"
    )
    model.add_argument("--model-id", metavar="ID", help="the provider's name of the model")
    model.add_argument("--model-path", metavar="FILE", help="a GGUF file to run in this process")
    model.add_argument("--api-base", metavar="URL", help="an OpenAI-compatible endpoint")
    model.add_argument(
        "--api-key",
        metavar="KEY",
        help="its key; safer in the environment, where other users cannot see it",
    )

    agent = parser.add_argument_group("agent")
    agent.add_argument(
        "--action-type",
        choices=("code", "tool_calling"),
        default="code",
        help="how the agent acts (default: %(default)s)",
    )
    agent.add_argument(
        "--imports",
        metavar="MODULE",
        nargs="+",
        action="extend",
        default=[],
        help="further modules that the code may import; '*' allows all",
    )
    agent.add_argument(
        "--executor-type",
        choices=("local", "docker", "wasm", "auto", "e2b", "modal", "blaxel", "inprocess"),
        default="local" if sys.platform == "linux" else "auto",
        help="where code runs: in a locked process, a container, WebAssembly, the first of those "
        "that works, a machine of a provider, or unprotected here (default: %(default)s)",
    )
    agent.add_argument(
        "--max-steps",
        metavar="N",
        type=_count,
        default=20,
        help="steps before an answer is due (default: %(default)s)",
    )

    output = parser.add_argument_group("output")
    output.add_argument(
        "--verbosity-level",
        type=int,
        choices=(-1, 0, 1, 2),
        default=1,
        help="-1: the bare answer, 0: errors and the answer, 1: the steps, 2: everything "
        "(default: %(default)s)",
    )
    output.add_argument("--quiet", action="store_true", help="print the bare answer only")
    output.add_argument(
        "--no-stream", action="store_true", help="show replies when they are complete"
    )
    return parser


def _check_no_command(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Refuses one word that is nearly a command: as a task it would be asked of a model."""
    words = [word for word in argv if not word.startswith("-")]
    if "--" in argv or len(words) != 1 or words[0] in _DESCRIPTIONS:
        return
    if close := difflib.get_close_matches(words[0].lower(), _DESCRIPTIONS, 1, 0.75):
        parser.error(
            f"there is no command {words[0]!r}. Did you mean {parser.prog} {close[0]}? "
            f"A task of one word goes behind two dashes: {parser.prog} -- {words[0]}"
        )


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {count}")
    return count
