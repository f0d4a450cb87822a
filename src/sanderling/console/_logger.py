"""Prints to the terminal, and only what the level asks for. Rich is imported at the first line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sanderling import sandbox
from sanderling.messages import ChatMessage

from ._text import excerpt, indented, text_width, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from sanderling.messages import MessageLike

    from ._tree import Drawable

YELLOW_HEX = "#d4b702"
_NOTEBOOK_ERROR = "bold #d9413a"  # "red" would be a brown that a dark page hides
MAX_BLOCK = 20_000
"""Characters of one task, code, log or answer that are shown."""


class LogLevel(IntEnum):
    """How much is printed; each level adds to those before it.

    A number beyond the last level is the last one.
    """

    OFF = -1
    ERROR = 0
    INFO = 1
    DEBUG = 2

    @classmethod
    def of(cls, level: LogLevel | int | str) -> LogLevel:
        """Returns a level by its number or its name.

        Raises:
            ValueError: There is none of that name.
        """
        return cls(level)  # type: ignore[arg-type]  # `_missing_` takes names

    @classmethod
    def _missing_(cls, value: object) -> LogLevel:
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int):
            return cls.DEBUG if value > cls.DEBUG else cls.OFF
        known = ", ".join(f"{level.name} ({level.value})" for level in cls)
        raise ValueError(f"{value!r} is no LogLevel; there is: {known}")


Level: TypeAlias = LogLevel | int | str
"""A level, its number, or its name."""


class AgentLogger:
    r"""Prints what agents do.

    Text is shown as it is: nothing in it is read as markup, and characters that would steer the
    terminal are written as escapes such as ``\x1b``. Where the output is no terminal, there are no
    colours and lines are not wrapped.

    Args:
        level: What is below it in importance is not printed. May be changed at any time.
        console: Where to print; by default standard output.
        first_step: The number that the first step of a run is shown with; smolagents 1.4 counted
            from 0. In memory and events it is 1 all the same.
        answer_title: What the final answer is printed after; smolagents 1.26 prints "Final answer".
    """

    def __init__(
        self,
        level: Level = LogLevel.INFO,
        console: Console | None = None,
        *,
        first_step: int = 1,
        answer_title: str = "Out - Final answer",
    ) -> None:
        self.level = LogLevel.of(level)
        self.answer_title = answer_title
        self._first_step = first_step
        self._console = console

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_console": None}  # another process has a standard output of its own

    def __deepcopy__(self, memo: object) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))  # copies print to the same place
        return twin

    def step_title(self, number: int) -> str:
        """Returns how the step of a number, counted from 1, is called."""
        return f"Step {number - 1 + self._first_step}"

    @property
    def console(self) -> Console:
        """The Rich console that is printed to."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(highlight=False)
        return self._console

    def together(self) -> AbstractContextManager[object]:
        """What is printed inside, which must not be nothing, is one output of a notebook."""
        return self.console if self.shows(LogLevel.INFO) else nullcontext()

    def shows(self, level: Level) -> bool:
        """Tells whether something of this level is printed."""
        shown = LogLevel.of(self.level)
        return shown > LogLevel.OFF and LogLevel.of(level) <= shown

    def log(self, *args: object, level: Level = LogLevel.INFO, **kwargs: Any) -> None:
        """Prints Rich renderables as they are, and anything else as plain text.

        Args:
            *args: What to print, separated by spaces.
            level: From which level on it is printed.
            **kwargs: Passed on to `rich.console.Console.print`, such as ``style`` or ``end``.
        """
        if not self.shows(level):
            return
        from rich.protocol import is_renderable
        from rich.text import Text

        printed = [
            arg
            if is_renderable(arg) and not isinstance(arg, str)
            else self.plain(sandbox.text_of(arg))
            for arg in args
        ]
        if all(isinstance(arg, Text) for arg in printed):
            kwargs.setdefault("soft_wrap", not self._wraps)
        self.console.print(*printed, **kwargs)

    def log_error(self, error_message: str) -> None:
        """Prints an error, all lines but the first moved; only the level `OFF` hides it."""
        if self.shows(LogLevel.ERROR):
            style = _NOTEBOOK_ERROR if self.console.is_jupyter else "bold red"
            text = self._moved(excerpt(error_message, MAX_BLOCK), first=False)
            self.log(text, style=style, level=LogLevel.ERROR)

    def log_indented(self, text: str, *, first: bool = False) -> None:
        """Prints text of others, all its lines, or all but the first, moved to the right."""
        if self.shows(LogLevel.INFO):
            self.log(self._moved(text, first=first))

    def log_markdown(
        self,
        content: str,
        title: str | None = None,
        level: Level = LogLevel.INFO,
        style: str = YELLOW_HEX,
    ) -> None:
        """Prints the source of a Markdown text, coloured, below a rule with the title."""
        if not self.shows(level):
            return
        if title is not None:
            from rich.rule import Rule

            heading = self.plain(title, "bold")
            self.console.print(Rule(heading, align="left", characters="─", style=style))
        if content:
            self._print_source(content, "markdown")

    def log_code(self, title: str, content: str, level: Level = LogLevel.INFO) -> None:
        """Prints Python code, coloured, between two rules."""
        if not self.shows(level):
            return
        from rich.rule import Rule
        from rich.text import Text

        line = "-" if self.console.options.ascii_only else "─"
        heading = Text.assemble(f"{line} ", self.plain(title, "bold"))
        with self.console:
            self.console.print(Rule(heading, align="left", characters=line, style="none"))
            self._print_source(content, "python")
            self.console.print(Rule(characters=line, style="none"))

    def log_rule(self, title: str, level: Level = LogLevel.INFO) -> None:
        """Prints a rule over the whole width, the title in its middle."""
        if not self.shows(level):
            return
        from rich.rule import Rule

        self.console.print(Rule(self.plain(title, "bold"), characters="━", style=YELLOW_HEX))

    def log_task(
        self,
        content: str,
        subtitle: str,
        title: str | None = None,
        level: Level = LogLevel.INFO,
    ) -> None:
        """Prints the panel that opens a run.

        Args:
            content: The task.
            subtitle: Written into the lower edge, such as the model's name.
            title: The agent's name, if it has one.
            level: From which level on it is printed.
        """
        if not self.shows(level):
            return
        from rich.panel import Panel

        panel = Panel(
            self.plain(f"\n{excerpt(content, MAX_BLOCK)}\n", "bold"),
            title=self.plain("New run" if title is None else f"New run - {title}", "bold"),
            subtitle=self.plain(subtitle),
            subtitle_align="left",
            border_style=YELLOW_HEX,
        )
        self.console.print(panel)

    def log_messages(self, messages: Sequence[MessageLike], level: Level = LogLevel.DEBUG) -> None:
        """Prints messages, or the dicts of some, each below a rule with its role."""
        if not self.shows(level):
            return
        for message in map(ChatMessage.of, messages):
            self.log_markdown(message.render_as_markdown(), title=message.role.value, level=level)

    def visualize_agent_tree(self, agent: Drawable) -> None:
        """Prints an agent as a tree: its model, its tools, and the agents it manages."""
        from ._tree import agent_tree

        self.log(agent_tree(agent, self.plain), level=LogLevel.ERROR)

    def plain(self, text: str, style: str = "") -> Text:
        """Returns a Rich text that shows `text` as it is."""
        from rich.text import Text

        return Text(visible(text, self.console.encoding), style=style)

    def _moved(self, text: str, *, first: bool) -> str:
        if self._wraps:
            lines = self.plain(text).wrap(self.console, text_width(self.console))
            text = "\n".join(line.plain for line in lines)
        return indented(text, first=first)

    @property
    def _wraps(self) -> bool:
        """Whether lines are broken where they are full, and code has colours."""
        return self.console.is_terminal or self.console.is_jupyter

    def _print_source(self, content: str, language: str) -> None:
        content = visible(excerpt(content, MAX_BLOCK), self.console.encoding)
        if self._wraps:
            from rich.syntax import Syntax

            self.console.print(Syntax(content, language, theme="monokai", word_wrap=True))
        else:
            self.console.out(content, highlight=False)
