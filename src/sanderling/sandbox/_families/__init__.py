"""The zygote's children: it forks them, lets them be copied, and reports their ends.

A child and all copies of it are a family. They share the filter of system calls, and the zygote
holds its listener: it decides whom a member may signal, and that it may fork when the host asked
for a copy, once. User code shares the memory of the kernel that carries the fork out, so whatever
it does is checked here, by what the system says of processes, and never by what they say.

A copy is made by forking twice. The process between the two ends at once, so the copy is a child
of the zygote from the start: it can ask to die with it, and needs nobody else to be buried. The
zygote thus knows every process of a family; if it cannot be sure of that, it ends the family.

``_zygote.py`` says how the host and the zygote speak. With each member there is a packet socket:

- A forked child sends its listener, if it has one, before it serves.
- To have a member copied it is sent ``copy`` and two descriptors: where the copy will serve, and
  the copy's own end of such a socket, on which the copy says ``here`` once it is a child of ours.
  It is sent ``no`` if it cannot be copied after all.
- A member that cannot be copied sends the error number, an ``i32``.
"""

from ._serving import Families

__all__ = ["Families"]
