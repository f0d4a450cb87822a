"""The fork server: the process that locked processes are forked from.

It is started as ``_fork_server.py <descriptor> <modules> <host> <folder>``.

A fresh interpreter takes tens of milliseconds, a fork of one that stands ready a few. This process
is never locked itself and runs no foreign code. It loads the kernel and the lock-down by path, for
the package that they belong to, and the rest of the host's code, stay outside the walls; and it
imports the modules that it was asked for, a list with commas. Where it has a PID namespace of its
own, what guards that removes the work folders of a host that was killed: the host is known by its
number, and its folders lie in the one that is named last.

The descriptor is a packet socket, whose other end the host alone holds; its end is ours, too:

- The first packet is from us: ``u64``, the bytes of address space that we take; 0 if the modules
  started threads that do not end. A fork of those would be broken, so we end instead.
- ``fork`` makes a process. It carries two descriptors: a packet socket for reports, and where the
  kernel will serve.
- ``copy <number> <pause>`` makes a template of the process of that number: a copy that has run
  nothing. It carries a packet socket for reports. The host tells the kernel of the process
  afterwards, which then forks. If pause is 1, the process is paused after that.
- ``use <number>`` makes a process like the template of that number. It carries the same as
  ``fork``.
- ``leave`` ends this process with its last child.

A report is one ``i32`` or two. The first report is 0, the number by which we know the process, and
carries a pidfd of it; or else it is the error number that the system refused with. The second is
the wait status of the process, once it is reaped.

What a process shall be like it reads for itself, before it is locked: ``u32`` length, then JSON
with ``environment`` and ``policy``. So this process, whose memory all children see, knows nothing
of any sandbox but that it exists. What its children do share is the layout of their memory and the
seed of ``hash``; `_copy.forget_what_was_before` says what they would share, and do not.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import struct
import sys

_PAGE = resource.getpagesize()
_HOST_IS_GONE = 3  # exit status
_LAST_BREATH = 10.0  # seconds for a host that is killed to end


def main() -> None:
    """Stands ready. In each child it serves, and does not return."""
    control, modules = int(sys.argv[1]), sys.argv[2].split(",") if sys.argv[2] else []
    host, folder = int(sys.argv[3]), sys.argv[4]
    del sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs time
    sys.path.insert(0, here)
    lockdown = importlib.import_module("lockdown")
    lockdown.harden_process((0, 1, 2, control))
    own_numbers = lockdown.enter_pid_namespace(
        host, lambda status: _clear_up_after(host, folder, status)
    )
    lockdown.die_with_parent()
    kernel = importlib.import_module("kernel")
    importlib.import_module("_posixsubprocess")  # the kernel changes it, and could not load it
    copying = importlib.import_module("_copy")
    forking = importlib.import_module("_forking")
    sys.path.remove(here)
    lockdown.prepare()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each child costs some
    if modules:
        _preload(modules)
    kernel.python_paths()  # else each child would look for them
    single = len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - pathlib costs time
    os.write(control, struct.pack("<Q", _address_space() if single else 0))
    if not single:
        return
    gc.collect()
    gc.freeze()  # else the first collection of each child would copy all of these pages
    server_pid = os.getpid()
    server = forking.ForkServer(control)
    ends = server.serve()
    if ends is None:
        sys.exit(_HOST_IS_GONE if server.host_has_ended else 0)
    # By way of numbers that are none of theirs, so that neither is put in the place of the other.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, copying.SUPERVISOR + 1) for end in ends if end >= 0]
    for end, place in zip(ends, (copying.CHANNEL, copying.SUPERVISOR), strict=False):
        os.dup2(end, place)
    copier = copying.Copier() if len(ends) == 2 else None

    def lock() -> "dict[str, object]":
        lockdown.harden_process((0, 1, 2, *(copying.CHANNEL, copying.SUPERVISOR)[: len(ends)]))
        if os.getppid() != server_pid:
            os._exit(0)  # it died before we could ask to die with it
        environment, policy = _read_orders(copying.CHANNEL)
        os.environ.clear()
        os.environ.update(environment)
        copying.forget_what_was_before()
        layers: dict[str, object] = lockdown.lock(
            lockdown.Policy.from_json(policy), copier and copying.hand_over
        )
        with contextlib.suppress(OSError):  # there was none, or it is closed already
            os.close(copying.SUPERVISOR)
        return {**layers, "pid namespace": own_numbers}

    kernel.serve(copying.CHANNEL, copying.CHANNEL, lock, copier)


def _clear_up_after(host: int, folder: str, status: int) -> None:
    """Removes what the host has left behind, if it has ended, or is at it just now."""
    try:
        pidfd = os.pidfd_open(host)
    except ProcessLookupError:
        pass
    else:
        patience = _LAST_BREATH if status == _HOST_IS_GONE else 0
        if not select.select([pidfd], [], [], patience)[0]:
            return
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib costs time
    sys.path.insert(0, os.path.dirname(os.path.dirname(here)))  # noqa: PTH120 - as above
    importlib.import_module("sanderling.sandbox._workdir").clear_up_after(host, folder)


def _preload(modules: "list[str]") -> None:
    """Imports what can be imported, and leaves no threads behind where they know how to end."""
    for name in modules:
        with contextlib.suppress(Exception):  # the code will get the error from its own import
            importlib.import_module(name)
    # OpenBLAS ends its threads before a fork, and starts them again where they are needed.
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib costs time
        return int(statm.read().split()[0]) * _PAGE


def _read_orders(number: int) -> "tuple[dict[str, str], str]":
    with open(number, "rb", buffering=0, closefd=False) as channel:
        orders = b""
        size = 4
        while len(orders) < size:
            part = channel.read(size - len(orders))
            if not part:
                os._exit(0)  # the host is gone
            orders += part
            if size == len(orders) == 4:
                size += int.from_bytes(orders, "little")
    loaded = json.loads(orders[4:])
    return loaded["environment"], loaded["policy"]


if __name__ == "__main__":
    main()
