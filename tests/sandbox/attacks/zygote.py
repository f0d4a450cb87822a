"""Forks kernels behind some of the walls: ``zygote.py <descriptor> <folder of the kernel>``.

An order is a packet of JSON ``{"walls", "policy"}`` with the kernel's end of a socket; the answer
is the process id of the fork.
"""

import functools
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any


def main() -> None:
    """Serves until the host closes its end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path.insert(0, sys.argv[2])
    kernel, lockdown = importlib.import_module("kernel"), importlib.import_module("lockdown")
    sys.path.remove(sys.argv[2])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
        if not text:
            return
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(descriptors[0], 3)
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            order = json.loads(text)
            lock = functools.partial(build, lockdown, order["walls"], order["policy"])
            kernel.serve(3, 3, lock)
        os.close(descriptors[0])
        control.send(str(child).encode())


def build(lockdown: Any, walls: str, text: str) -> dict[str, object]:
    """Builds one of the walls around this process, or those that `lock` builds."""
    policy = lockdown.Policy.from_json(text)
    lockdown.harden_process((0, 1, 2, 3))
    os.chdir(policy.workdir)
    if walls == "all but namespaces":
        return dict(lockdown.lock(policy))
    if walls == "namespaces":
        lockdown._own_root.enter(policy)
    elif walls == "capabilities":
        lockdown._process.drop_capabilities()
    elif walls == "limits":
        lockdown._process.set_limits(
            memory_bytes=policy.memory_bytes,
            file_bytes=policy.file_bytes,
            open_files=policy.open_files,
            cpu_seconds=policy.cpu_seconds,
        )
    elif walls == "landlock":
        lockdown._process.forbid_new_privileges()
        version = lockdown._landlock.abi()
        lockdown._landlock.restrict(policy.read, policy.write, version=version)
    elif walls == "seccomp":
        lockdown._process.forbid_new_privileges()
        lockdown._seccomp.load(lockdown._rules.rules(os.getpid()))
    elif walls != "process":
        raise ValueError(f"no such wall: {walls}")
    return {"walls": walls}


if __name__ == "__main__":
    main()
