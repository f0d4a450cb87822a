"""What a case of the attack suite is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Layer = Literal[
    "process",
    "capabilities",
    "limits",
    "namespaces",
    "landlock",
    "seccomp",
    "together",
    "clock",
    "wire",
    "restart",
]
"""What can stop an attack.

``process``
    The code runs in a process of its own, which was handed no secret, descriptor or object.
``capabilities``, ``limits``, ``namespaces``, ``landlock``, ``seccomp``
    The layers of the lock-down.
``together``
    Landlock and seccomp: each of them alone lets a part of the attack through.
``clock``
    The host's: it interrupts, then kills.
``wire``
    What the host checks of every frame, and counts.
``restart``
    The code ended its own interpreter; the next step gets a fresh one.
"""

WALLS: tuple[Layer, ...] = ("capabilities", "limits", "namespaces", "landlock", "seccomp")
"""The layers that can be left out, to see what each of them stops alone."""

End = Literal["refused", "contained", "limited", "ended", "violation", "remains"]
"""What comes of an attack.

``refused``
    It failed, with the system's own error.
``contained``
    The code reached what it wanted inside its process, used it, and nothing happened outside.
``limited``
    A limit or the clock stopped it.
``ended``
    The code ended its own interpreter, nothing else.
``violation``
    The host saw that the protocol was broken, and killed the interpreter.
``remains``
    It works. No layer is there to stop it; ``docs/security.md`` says so.
"""


@dataclass(frozen=True)
class Case:
    """One attempt.

    The code finds the names of `inside.py`, those of `estate.Targets`, and two tools, ``note`` and
    ``final_answer``. What it claims is the value of its last line, or its last printed line:
    ``"reached"`` (object access, inside), ``"through"``, ``"refused"``, ``"limited"``.
    """

    name: str
    of: tuple[str, ...]
    """Numbers of `corpus.TECHNIQUES` and ids of `corpus.ROWS`."""
    code: str | tuple[str, ...]
    """One step, or several in one interpreter."""
    end: End = "refused"
    layers: tuple[Layer, ...] = ("landlock", "namespaces")
    """Each of these stops it alone."""
    apart: bool = True
    """Whether it may be tried with walls missing."""
    seconds: float = 10.0
    """How long a step may run."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Settings of the sandbox."""
    needs: tuple[str, ...] = ()
    """Packages that the code imports, or the machine that it is for."""
    told: str = ""
    """What must be found in the host's words about it."""
    notes: int = 0
    """How many calls of ``note`` may reach the host."""
    fresh: str = ""
    """A step for a second interpreter, made afterwards; it must return ``"clean"``."""
    growth: int = 1 << 30
    """Bytes that it may add to the host's memory at its peak."""
    agent: bool = False
    """Whether an agent runs the steps, with the tools and objects of `agent_host.py`."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps."""
        return (self.code,) if isinstance(self.code, str) else self.code
