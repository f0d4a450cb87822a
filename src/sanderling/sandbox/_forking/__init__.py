"""The fork server's work: it forks processes, copies them, and reports how they end.

A copy is made by a fork that this process controls as a tracer. User code shares the memory of the
process that forks, so none of that process' memory, messages or timing is trusted:

- The filter of system calls stops a fork for the tracer, with exactly the flags of fork(); without
  a tracer it fails. The tracer is there for one fork, of the main thread.
- The new process is traced from its birth, and has run nothing. It stays so: a *template*. It has
  no descriptor that leads to the host.
- A template is put to use by a fork of it, made while it is stopped. What comes of that gets a
  channel of its own, has to die with its parent, and only then runs.
- All processes are children of the fork server. A template dies with it because it is traced, and
  all others because they ask the kernel for it before they run foreign code.

No process sends the fork server a byte after it is locked. What it reads of them is what the kernel
says: that they have stopped, at which call, and that they have ended.

`_fork_server.py` says how the host and the fork server speak.
"""

from ._server import ForkServer

__all__ = ["ForkServer"]
