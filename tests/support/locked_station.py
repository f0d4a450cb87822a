"""A program that forks a child for each order it reads, locks it, and runs the order's code there.

It imports nothing but the standard library and ``lockdown``, which lies beside it. An order is a
line of JSON ``{"code", "policy", "names", "lock", "seconds"}``; the answer is a line of JSON
``{"status", "said"}``: how the child ended (negative: by that signal) and what its code said.
"""

import errno
import importlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
lockdown = importlib.import_module("lockdown")


def main() -> None:
    # A descriptor that a careless child would inherit, for the code to look for.
    os.set_inheritable(os.open(__file__, os.O_RDONLY), True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(carry_out(order)), flush=True)


def carry_out(order: dict[str, Any]) -> dict[str, object]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            be_child(order, writing)
        finally:
            os._exit(9)
    os.close(writing)
    said = b""
    deadline = time.monotonic() + order["seconds"]
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not (piece := os.read(reading, 65536)):
            break
        said += piece
    else:
        os.kill(child, signal.SIGKILL)
        said += b"(out of time)"
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "said": said.decode(errors="replace")}


def be_child(order: dict[str, Any], writing: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(writing, 1)
    os.dup2(1, 2)
    layers: object = None
    try:
        if order["lock"]:
            policy = lockdown.policy_for(**order["policy"])
            lockdown.harden_process([0, 1, 2])
            layers = lockdown.lock(policy)
        else:
            os.chdir(order["policy"]["workdir"])
        names = {"__name__": "__main__", "layers": layers, **order["names"]}
        exec(order["code"], names)
        said = names.get("said", "")
    except OSError as error:
        said = errno.errorcode.get(error.errno or 0, f"{type(error).__name__}: {error}")
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    os.write(1, str(said).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
