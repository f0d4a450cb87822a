"""What `import sanderling` and the first names cost, against a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from .figures import Figure, show

ROUNDS = 9
STATEMENTS = {
    "import sanderling": "import sanderling",
    "from sanderling import CodeAgent, tool": "from sanderling import CodeAgent, tool",
}
_PROBE = (
    "import resource, sys; {statement}; r = resource.getrusage(resource.RUSAGE_SELF); "
    "print(r.ru_utime + r.ru_stime, len(sys.modules))"
)


def _run(statement: str) -> tuple[float, int]:
    out = subprocess.run(
        [sys.executable, "-c", _PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return float(out[0]) * 1e3, int(out[1])


def measure() -> list[Figure]:
    """Returns CPU time and module count of each statement, interleaved with a bare start."""
    bare: list[tuple[float, int]] = []
    runs: dict[str, list[tuple[float, int]]] = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        bare.append(_run("pass"))
        for name, statement in STATEMENTS.items():
            runs[name].append(_run(statement))
    start = median(cpu for cpu, _ in bare)
    modules = bare[0][1]
    figures = []
    for name, results in runs.items():
        cpu = median(cpu for cpu, _ in results)
        figures.append(Figure(f"{name}: CPU above a bare start", cpu - start, "ms", start, 150))
        figures.append(Figure(f"{name}: modules", results[0][1], "", modules, 200))
    return figures


def main() -> bool:
    """Prints the figures."""
    return show("Import (floor: the bare interpreter)", measure())


if __name__ == "__main__":
    main()
