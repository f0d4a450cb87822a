"""Forks the members of families, has them copied, and buries them, as the host says."""

import collections
import contextlib
import errno
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._system import (
    borrowed,
    children,
    is_child,
    is_process,
    pair,
    readable,
    receive,
    refuse,
    report,
    sender,
    shown_number,
    tell,
)

if TYPE_CHECKING:
    from sanderling.sandbox.lockdown import Notice

_PATIENCE = 10.0  # seconds for a member to be copied
_LAST_BREATH = 5.0  # seconds for a process that is killed to end
_SIGNALS = ("kill", "tgkill")


class _Member:
    """A process of a family: descriptors and no objects, which would close them in a fork."""

    def __init__(self, family: "_Family", pidfd: int, reports: int, guard: int) -> None:
        self.family = family
        self.pidfd = pidfd
        self.reports = reports
        self.guard = guard


class _Copy:
    """A copy that the host has asked for."""

    def __init__(self, parent: int, reports: int, channel: int, *, stop: bool) -> None:
        self.parent = parent
        self.reports = reports
        self.channel = channel
        self.stop = stop  # whether the parent shall be stopped, once it is copied
        self.until = 0.0
        self.hello = -1  # where the copy will speak
        self.orphan = False  # whether the parent has ended meanwhile
        self.begun = False  # whether the parent was let fork
        self.between: int | None = None  # the process between the parent and the copy


class _Family:
    def __init__(self, first: int) -> None:
        self.first = first  # the process group of all of them: none can leave it
        self.listener: int | None = None
        self.members: set[int] = set()
        self.copies: collections.deque[_Copy] = collections.deque()  # the first is being made


class Families:
    """Serves the host.

    Args:
        control: The descriptor of the socket that leads to it.
        next_notice: `lockdown.next_notice`.
        answer: `lockdown.answer`.

    Attributes:
        host_is_gone: Whether `serve` has ended because there is no host any more.
    """

    def __init__(
        self,
        control: int,
        next_notice: "Callable[[int], Notice | None]",
        answer: "Callable[[int, Notice, int], None]",
    ) -> None:
        self._control = control
        self._next_notice = next_notice
        self._answer = answer
        self._members: dict[int, _Member] = {}
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}
        self.host_is_gone = False
        self._leaving = False
        self._strays_until = 0.0  # how long to look for the last of a family that was ended
        self._poll.register(control, select.POLLIN)

    def serve(self) -> "tuple[int, int] | None":
        """Does what the host says, until there is no host, or nobody left to care for.

        Returns:
            In a forked child, the descriptors of its channel and of its end of the socket to us; in
            this process, when it shall end, None.
        """
        while self._members or not self._leaving:
            ready = [number for number, _ in self._poll.poll(self._milliseconds())]
            if self._control in ready:
                order, descriptors = receive(self._control, 64, 2)
                if order is None:
                    continue
                kind, *numbers = order.split() or [b""]
                if kind == b"fork":
                    child = self._fork(*descriptors)
                    if child is not None:
                        return child
                elif kind == b"copy":
                    self._ask_for_copy(*map(int, numbers), *descriptors)
                elif kind == b"leave":
                    self._leaving = True
                else:
                    self.host_is_gone = True
                    return None
            for number in ready:
                # What one handler closes, the next may open under the same number. So no handler
                # takes it for granted that there is something to read.
                if number in self._handlers:
                    self._handlers[number]()
            self._end_late_copies()
            if self._strays_until:
                self._bury_strays()
        return None

    def _watch(self, descriptor: int, handler: "Callable[[], object]") -> None:
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, select.POLLIN)

    def _close(self, descriptor: int) -> None:
        self._ignore(descriptor)
        os.close(descriptor)

    def _ignore(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    # Forking

    def _fork(self, *descriptors: int) -> "tuple[int, int] | None":
        if len(descriptors) < 2:  # more than this process may have
            refuse(descriptors, errno.EMFILE)
            return None
        reports, channel = descriptors
        pid = -1
        ends: tuple[int, ...] = ()
        try:
            ends = pair()
            pid = os.fork()
            if pid == 0:
                return channel, ends[1]
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            if pid > 0:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            refuse((reports, *ends[:1]), error.errno or errno.EAGAIN)
            return None
        finally:
            if pid:
                for descriptor in (channel, *ends[1:]):
                    os.close(descriptor)
        family = _Family(pid)
        self._add(pid, _Member(family, pidfd, reports, ends[0]))
        self._watch(ends[0], lambda: self._take_listener(pid))
        report(reports, 0, pid, pidfd)
        return None

    def _add(self, pid: int, member: _Member) -> None:
        self._members[pid] = member
        member.family.members.add(pid)
        self._watch(member.pidfd, lambda: self._bury(pid))

    def _take_listener(self, pid: int) -> None:
        """Takes the first thing that a child says, and listens to it no more."""
        member = self._members[pid]
        family = member.family
        told, descriptors = receive(member.guard, 1, 1)
        if told is None:
            return
        self._ignore(member.guard)
        for listener in descriptors:
            family.listener = listener
            self._watch(listener, lambda: self._judge(family))

    # Burying

    def _bury(self, pid: int) -> None:
        member = self._members[pid]
        family = member.family
        if not readable(member.pidfd):
            return
        if family.copies and family.copies[0].parent == pid:
            # It may end while its copy is on the way. Until that is here, it is not buried, so the
            # number of the group is no other's.
            self._ignore(member.pidfd)
            family.copies[0].orphan = True
            return
        buried, status = os.waitpid(pid, os.WNOHANG)
        if not buried:
            return
        del self._members[pid]
        family.members.remove(pid)
        self._close(member.pidfd)
        self._close(member.guard)
        self._bury_strays()
        report(member.reports, status)
        os.close(member.reports)
        if not family.members and family.listener is not None:
            self._close(family.listener)
            family.listener = None

    def _bury_strays(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in self._members:
                    return  # its turn will come, and then ours
                os.waitpid(found.si_pid, 0)

    # What members may do

    def _judge(self, family: _Family) -> None:
        listener = family.listener
        if listener is None or not readable(listener):
            return
        notice = self._next_notice(listener)
        if notice is None:
            return
        if notice.call in _SIGNALS:
            # As the kernel reads it: 32 bits, with a sign.
            target = struct.unpack("<i", struct.pack("<I", notice.arguments[0] & 0xFFFFFFFF))[0]
            allowed = target in family.members
        else:
            allowed = notice.call == "clone" and self._may_fork(family, notice.caller)
        self._answer(listener, notice, 0 if allowed else errno.EPERM)

    def _may_fork(self, family: _Family, caller: int) -> bool:
        """Says yes twice for each copy: to the member itself, and to the process that it made."""
        copy = family.copies[0] if family.copies else None
        if copy is None:
            return False
        if not copy.begun:
            copy.begun = caller == copy.parent
            return copy.begun
        if copy.between is None and caller not in family.members and is_process(caller):
            copy.between = caller
            return True
        return False

    # Copying

    def _milliseconds(self) -> "float | None":
        now = time.monotonic()
        families = {member.family for member in self._members.values()}
        ends = [family.copies[0].until for family in families if family.copies]
        if self._strays_until > now:
            ends.append(now + _LAST_BREATH / 100)
        else:
            self._strays_until = 0.0
        return max(0.0, min(ends) - now) * 1000 if ends else None

    def _end_late_copies(self) -> None:
        late = {
            member.family
            for member in self._members.values()
            if member.family.copies and member.family.copies[0].until <= time.monotonic()
        }
        for family in late:
            self._fail(family, errno.ETIMEDOUT)

    def _ask_for_copy(self, parent: int, stop: int, *descriptors: int) -> None:
        member = self._members.get(parent)
        if member is not None and member.family.listener is None:
            self._take_listener(parent)  # it may have come with this order
        if member is None:
            refuse(descriptors, errno.ESRCH)
        elif len(descriptors) < 2 or member.family.listener is None:
            tell(member.guard, b"no")
            refuse(descriptors, errno.EOPNOTSUPP if len(descriptors) == 2 else errno.EMFILE)
        else:
            member.family.copies.append(_Copy(parent, *descriptors, stop=bool(stop)))
            if len(member.family.copies) == 1:
                self._begin_copy(member.family)

    def _begin_copy(self, family: _Family) -> None:
        while family.copies:
            copy = family.copies[0]
            member = self._members.get(copy.parent)
            ends: tuple[int, ...] = ()
            try:
                if member is None:
                    raise ProcessLookupError(errno.ESRCH, "")
                ends = copy.hello, theirs = pair()
                with borrowed(copy.hello) as hello:
                    hello.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                if not tell(member.guard, b"copy", copy.channel, theirs):
                    raise ConnectionError(errno.EPIPE, "it has closed its end")
            except OSError as error:
                family.copies.popleft()
                if member is not None:
                    tell(member.guard, b"no")
                refuse((copy.reports, copy.channel, *ends), error.errno or errno.EAGAIN)
                continue
            os.close(theirs)
            os.close(copy.channel)
            copy.until = time.monotonic() + _PATIENCE
            self._watch(copy.hello, lambda: self._welcome(family))
            self._watch(member.guard, lambda: self._hear_of_failure(family))
            return

    def _welcome(self, family: _Family) -> None:
        copy = family.copies[0]
        pid = sender(copy.hello)
        if pid is None:
            return
        # It must be the one process that is new, and our child: then its number is its own.
        if copy.between is None or pid in (*family.members, copy.between) or not is_child(pid):
            self._fail(family, errno.EPROTO)
            return
        pidfd = os.pidfd_open(pid)
        self._ignore(copy.hello)
        self._add(pid, _Member(family, pidfd, copy.reports, copy.hello))
        if copy.stop:
            os.kill(copy.parent, signal.SIGSTOP)
        self._finish_copy(family)
        if not report(copy.reports, 0, pid, pidfd):
            os.kill(pid, signal.SIGKILL)  # nobody wants it any more
        self._begin_copy(family)

    def _hear_of_failure(self, family: _Family) -> None:
        parent = self._members[family.copies[0].parent]
        told, _ = receive(parent.guard, 4, 0)
        if told is None:
            return
        if not told:  # it has ended, or closed its end; if there is no copy on the way, we hear
            self._ignore(parent.guard)
            return
        number = int.from_bytes(told, "little")
        self._fail(family, number if number in errno.errorcode else errno.EPROTO)

    def _fail(self, family: _Family, number: int) -> None:
        """Ends an attempt to copy, and the family with it, if there could be a process too many."""
        copy = family.copies[0]
        if copy.begun and (number == errno.ETIMEDOUT or self._has_strays(copy)):
            os.killpg(family.first, signal.SIGKILL)
            self._strays_until = time.monotonic() + _LAST_BREATH
        self._finish_copy(family)
        refuse((copy.reports, copy.hello), number)
        self._begin_copy(family)

    def _finish_copy(self, family: _Family) -> None:
        copy = family.copies.popleft()
        self._ignore(copy.hello)
        self._ignore(self._members[copy.parent].guard)
        if copy.orphan:
            self._bury(copy.parent)

    def _has_strays(self, copy: _Copy) -> bool:
        # What is stopped, with all of its threads, is not about to fork.
        os.kill(copy.parent, signal.SIGSTOP)
        os.waitid(os.P_PID, copy.parent, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._bury_strays()
        try:
            mine = children("self")
            its = children(shown_number(self._members[copy.parent].pidfd))
        except OSError:
            return True  # who knows
        if not copy.stop:
            os.kill(copy.parent, signal.SIGCONT)
        return bool(its) or len(mine) > len(self._members)
