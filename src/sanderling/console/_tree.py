"""An agent as a tree: its model, its tools, and the agents it manages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

MAX_TEXT = 500


class Described(Protocol):
    """A tool, as a tree shows it."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def description(self) -> str:
        """What it does."""

    @property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Its arguments."""


class Drawable(Protocol):
    """An agent, as a tree shows it."""

    @property
    def name(self) -> str | None:
        """What it is called."""

    @property
    def description(self) -> str | None:
        """What it is good for."""

    @property
    def model(self) -> object:
        """Who is asked; may have a ``model_id``."""

    @property
    def tools(self) -> Mapping[str, Described]:
        """What it can call."""

    @property
    def managed_agents(self) -> Mapping[str, Drawable]:
        """Whom it can call."""


Plain = Callable[[str, str], "Text"]


def agent_tree(agent: Drawable, plain: Plain) -> Tree:
    """Draws an agent.

    Args:
        agent: What is drawn.
        plain: Makes a text of a style in which nothing is read as markup.
    """
    from rich.tree import Tree

    tree = Tree(plain(_title(agent), "bold"))
    _fill(tree, agent, plain)
    return tree


def _fill(tree: Tree, agent: Drawable, plain: Plain) -> None:
    from rich.table import Table

    if agent.description:
        tree.add(plain(f"Description: {_short(agent.description)}", ""))
    imports = getattr(agent, "additional_authorized_imports", None)
    if imports:
        tree.add(plain(f"Authorized imports: {', '.join(imports)}", ""))
    table = Table(show_header=True, header_style="bold")
    for heading in ("Tool", "Description", "Arguments"):
        table.add_column(heading)
    for tool in agent.tools.values():
        arguments = [
            f"{name} ({declared.get('type', 'any')}"
            f"{', may be left out' if declared.get('nullable') else ''}): "
            f"{_short(str(declared.get('description', '')))}"
            for name, declared in tool.inputs.items()
        ]
        table.add_row(
            plain(tool.name, "bold"),
            plain(_short(tool.description), ""),
            plain("\n".join(arguments), ""),
        )
    tree.add(plain("Tools:", "bold")).add(table)
    if agent.managed_agents:
        branch = tree.add(plain("Managed agents:", "bold"))
        for child in agent.managed_agents.values():
            _fill(branch.add(plain(_title(child), "bold")), child, plain)


def _title(agent: Drawable) -> str:
    name = f"{agent.name} | " if agent.name else ""
    model_id = getattr(agent.model, "model_id", None)
    model = " - ".join(filter(None, (type(agent.model).__name__, model_id)))
    return f"{name}{type(agent).__name__} | {model}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
