"""Where the locked process begins: ``python -I -B _locked.py <descriptor> <policy>``.

It loads the kernel and the lock-down by path, for the package that they belong to, and the rest of
the host's code, stay outside the walls.
"""

import importlib
import os
import sys


def main() -> None:
    """Loads, locks, serves."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs time
    sys.path.insert(0, here)
    kernel = importlib.import_module("kernel")
    lockdown = importlib.import_module("lockdown")
    sys.path.remove(here)
    descriptor, policy = int(sys.argv[1]), sys.argv[2]
    del sys.argv[1:]
    if descriptor != 3:
        os.dup2(descriptor, 3)

    def lock() -> "dict[str, object]":
        lockdown.harden_process((0, 1, 2, 3))
        layers: dict[str, object] = lockdown.lock(lockdown.Policy.from_json(policy))
        return layers

    kernel.serve(3, 3, lock)


if __name__ == "__main__":
    main()
