"""Forks processes, copies them, and reports how they end, as the host orders."""

import collections
import contextlib
import errno
import functools
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ._copying import ForkFailed, called, forked, twin
from ._system import open_descriptors, receive, refuse, report

if TYPE_CHECKING:
    from sanderling.sandbox import lockdown
    from sanderling.sandbox.lockdown import ptrace
else:
    import lockdown
    from lockdown import ptrace

Steps: TypeAlias = "Generator[int, ptrace.Stop, None]"

CHANNEL = 3
"""The descriptor of each process that leads to the host."""

MAY_I_FORK = 0x7FFFFFFF
"""No process has this number. A signal to it asks to be traced, in order to fork."""

_PATIENCE = 10.0  # seconds for what a process does as it is traced
_STRAYS = 1.0  # seconds from the end of a process to the birth of its last child
_PATIENCE_TO_ASK = 3.0  # seconds for a process to ask for the copy that the host has ordered


class _Process:
    """A child. It holds descriptors rather than objects, which would close them in a fork."""

    def __init__(self, pid: int, pidfd: int, reports: int, inode: int) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.reports = reports
        self.inode = inode  # of its channel
        self.source = -1  # where its listener comes from, until it has
        self.copyable = False
        self.copies: collections.deque[_Copy] = collections.deque()


class _Copy:
    """A copy that the host has ordered, of a process that has not asked to fork yet."""

    def __init__(self, reports: int, *, pause: bool) -> None:
        self.reports = reports
        self.pause = pause  # whether the process is paused afterwards
        self.until = time.monotonic() + _PATIENCE_TO_ASK


class _Work:
    """What is under way with processes that are traced."""

    def __init__(self, steps: Steps, pid: int) -> None:
        self.steps = steps
        self.pid = pid
        self.waits_for = pid
        self.until = time.monotonic() + _PATIENCE


class ForkServer:
    """Serves the host.

    Args:
        control: The descriptor of the socket that leads to it.

    Attributes:
        host_has_ended: Whether `serve` has returned because there is no host any more.
    """

    def __init__(self, control: int) -> None:
        self._control = control
        self._processes: dict[int, _Process] = {}
        self._work: dict[int, _Work] = {}  # by the number of the process
        self._queued: collections.deque[_Work] = collections.deque()
        self._stops: dict[int, collections.deque[ptrace.Stop]] = {}  # that nothing has read yet
        self._tracing = False  # whether processes that stop wake us
        self._strays_until = 0.0  # how long something may be born of a process that was killed
        self._channels: dict[int, int] = {}  # that processes are about to get
        self._poll = select.epoll()
        self._handlers: dict[int, Callable[[int], object]] = {}
        self._can_trace = _can_trace()
        self._wakes, self._wakened = socket.socketpair()
        self.host_has_ended = False
        self._leaving = False
        self._poll.register(control, select.EPOLLIN)

    def serve(self) -> "tuple[int, int] | None":
        """Does what the host orders, until there is no host, or until the last child has ended.

        Returns:
            In a forked child, the descriptors of its channel and of the socket that takes its
            listener, or -1 where it cannot be copied; in this process None.
        """
        for end in (self._wakes, self._wakened):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wakened.fileno(), warn_on_full_buffer=False)
        self._handle(self._wakes.fileno(), self._drain)
        while self._processes or not self._leaving:
            ready = dict(self._poll.poll(self._seconds()))
            # An order comes before what the process does that the host told afterwards.
            if ready.pop(self._control, 0):
                child = self._obey()
                if child is not None:
                    self._forget()
                    return child
                if self.host_has_ended:
                    return None
            for number, events in ready.items():
                # A handler may have closed what another one was for: each looks for itself.
                if number in self._handlers:
                    self._handlers[number](events)
            self._go_on_with_work()
            self._give_up_what_is_late()
        return None

    def _forget(self) -> None:
        """Closes, in a child, what Python would close at any time later."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (self._wakes, self._wakened, self._poll):
            each.close()

    def _obey(self) -> "tuple[int, int] | None":
        order, descriptors = receive(self._control, 64, 2)
        if order is None:
            return None
        kind, *numbers = order.split() or [b""]
        if kind == b"fork":
            return self._fork(*descriptors)
        if kind == b"copy":
            self._order_copy(*map(int, numbers), *descriptors)
        elif kind == b"use":
            self._order_use(*map(int, numbers), *descriptors)
        elif kind == b"leave":
            self._leaving = True
        else:
            self.host_has_ended = True
        return None

    def _handle(self, descriptor: int, handler: "Callable[[int], object]") -> None:
        self._handlers[descriptor] = handler
        self._poll.register(descriptor, select.EPOLLIN)

    def _ignore(self, descriptor: int) -> None:
        if self._handlers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def _close(self, descriptor: int) -> None:
        self._ignore(descriptor)
        os.close(descriptor)

    def _drain(self, events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wakes.recv(4096)

    # Processes

    def _fork(self, *descriptors: int) -> "tuple[int, int] | None":
        if len(descriptors) < 2:  # more than this process may have
            refuse(descriptors, errno.EMFILE)
            return None
        reports, channel = descriptors
        pid = -1
        ours = theirs = -1
        try:
            inode = os.fstat(channel).st_ino
            if self._can_trace:
                ours, theirs = (end.detach() for end in socket.socketpair())
            pid = os.fork()
            if pid == 0:
                return channel, theirs
            process = self._add(pid, reports, inode)
        except OSError as error:
            if pid > 0:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            refuse((reports, *[ours][: ours >= 0]), error.errno or errno.EAGAIN)
            return None
        finally:
            if pid:
                for descriptor in (channel, *[theirs][: theirs >= 0]):
                    os.close(descriptor)
        if ours >= 0:
            process.source = ours
            self._handle(ours, lambda _: self._take_listener(process))
        self._welcome(process, reports)
        return None

    def _add(self, pid: int, reports: int, inode: int) -> _Process:
        process = _Process(pid, os.pidfd_open(pid), reports, inode)
        self._processes[pid] = process
        self._handle(process.pidfd, lambda _: self._bury(process))
        return process

    def _take_listener(self, process: _Process) -> None:
        """Reads all that a process ever sends: one packet, before it runs foreign code."""
        data, descriptors = receive(process.source, 1, 1)
        if data is None:
            return
        self._close(process.source)
        process.source = -1
        for listener in descriptors:
            process.copyable = True
            self._handle(listener, functools.partial(self._answer, listener))

    def _bury(self, process: _Process) -> None:
        buried, status = os.waitpid(process.pid, os.WNOHANG)
        if not buried:
            return
        del self._processes[process.pid]
        self._close(process.pidfd)
        if process.source >= 0:
            self._close(process.source)
        for work in list(self._work.values()):
            if process.pid == work.waits_for:
                self._fail(work, errno.ESRCH)
        for copy in process.copies:
            refuse((copy.reports,), errno.ESRCH)
        if process.reports >= 0:
            report(process.reports, status)
            self._close(process.reports)

    def _kill(self, pid: int) -> None:
        if pid in self._processes:
            os.kill(pid, signal.SIGKILL)

    # Calls that the filter leaves to us

    def _answer(self, listener: int, events: int) -> None:
        if not events & select.EPOLLIN:  # the last process behind this filter has ended
            self._close(listener)
            return
        notice = lockdown.next_notice(listener)
        if notice is None:
            return
        refusal = errno.EPERM
        # As the kernel reads it: 32 bits, with a sign.
        target = struct.unpack("<i", struct.pack("<I", notice.arguments[0] & 0xFFFFFFFF))[0]
        if notice.caller in self._channels:
            self._hand_over(listener, notice)
        elif target == MAY_I_FORK:
            self._begin_copy(notice.caller)
        elif target > 0 and lockdown.is_thread_of(notice.caller, target):
            refusal = 0
        lockdown.answer(listener, notice, refusal)

    def _hand_over(self, listener: int, notice: lockdown.Notice) -> None:
        channel = self._channels[notice.caller]
        with contextlib.suppress(OSError):  # the descriptor stays there, and `_use` sees that
            lockdown.add_descriptor(listener, notice, channel, CHANNEL)
            del self._channels[notice.caller]
            os.close(channel)

    # Copies

    def _order_copy(self, pid: int, pause: int, *descriptors: int) -> None:
        process = self._processes.get(pid)
        if process is not None and process.source >= 0:
            self._take_listener(process)  # it may have come with this order
        if process is None:
            refuse(descriptors, errno.ESRCH)
        elif not descriptors:
            pass  # the host learns it from the other end, which is closed
        elif not process.copyable:
            refuse(descriptors, errno.EOPNOTSUPP)
        else:
            process.copies.append(_Copy(descriptors[0], pause=bool(pause)))

    def _begin_copy(self, pid: int) -> None:
        process = self._processes.get(pid)
        if process is None or not process.copies or pid in self._work:
            return
        copy = process.copies.popleft()
        try:
            ptrace.seize(pid)
        except OSError as error:
            refuse((copy.reports,), error.errno or errno.EPERM)
            return
        self._begin(_Work(self._copy(process, copy), pid))

    def _copy(self, process: _Process, copy: _Copy) -> Steps:
        child = -1
        try:
            with self._let_go(process.pid, pause=copy.pause):
                child = yield from forked(process.pid)
            template = self._add(child, -1, 0)
            for descriptor in open_descriptors(template.pidfd, process.inode):
                yield from called(child, "close", descriptor)
            self._welcome(template, copy.reports)
        except OSError as error:
            self._kill(child)
            refuse((copy.reports,), error.errno or errno.EAGAIN)

    def _order_use(self, pid: int, *descriptors: int) -> None:
        template = self._processes.get(pid)
        if template is None:
            refuse(descriptors, errno.ESRCH)
        elif len(descriptors) < 2:
            refuse(descriptors, errno.EMFILE)
        else:
            work = _Work(self._use(template, *descriptors), pid)
            if pid in self._work:
                self._queued.append(work)
            else:
                self._begin(work)

    def _use(self, template: _Process, reports: int, channel: int) -> Steps:
        child = -1
        channels = [channel]  # that are still ours
        try:
            inode = os.fstat(channel).st_ino
            with self._ended_if_unknown(template.pid):
                child = yield from twin(template.pid)
            process = self._add(child, -1, inode)
            process.copyable = True
            yield from self._accepted(child, "prctl", *lockdown.DIE_WITH_PARENT)
            self._channels[child] = channel
            yield from called(child, "kill", MAY_I_FORK, 0)
            if child in self._channels:
                raise OSError(errno.EMFILE, "the process did not get its channel")
            channels.clear()
            ptrace.let_go(child)
            self._welcome(process, reports)
        except OSError as error:
            self._channels.pop(child, None)
            self._kill(child)
            refuse((reports, *channels), error.errno or errno.EAGAIN)

    @contextlib.contextmanager
    def _let_go(self, pid: int, *, pause: bool) -> Iterator[None]:
        try:
            with self._ended_if_unknown(pid):
                yield
        finally:
            if pause:
                self._pause(pid)
            with contextlib.suppress(OSError):  # it has ended
                ptrace.let_go(pid)

    @contextlib.contextmanager
    def _ended_if_unknown(self, pid: int) -> Iterator[None]:
        try:
            yield
        except ForkFailed:
            raise
        except OSError:
            self._kill(pid)
            raise

    def _accepted(self, pid: int, call: str, *arguments: int) -> Steps:
        result = yield from called(pid, call, *arguments)
        if result < 0:
            raise OSError(-result, f"{call} failed")

    def _welcome(self, process: _Process, reports: int) -> None:
        process.reports = reports
        report(reports, 0, process.pid, process.pidfd)
        self._handle(reports, lambda _: self._end_unwanted(process))

    def _end_unwanted(self, process: _Process) -> None:
        """Ends a process whose end the host does not want to hear of: it has closed the socket."""
        self._ignore(process.reports)
        self._kill(process.pid)

    def _pause(self, pid: int) -> None:
        if pid in self._processes:
            os.kill(pid, signal.SIGSTOP)

    # Work

    def _begin(self, work: _Work) -> None:
        if not self._tracing:
            self._tracing = True
            # Without a handler we sleep on when the host pauses a process, as it does in each step.
            signal.signal(signal.SIGCHLD, lambda *_: None)
        self._work[work.pid] = work
        self._stops.pop(work.pid, None)
        self._run(work, lambda: next(work.steps))

    def _go_on_with_work(self) -> None:
        if not self._tracing:
            return
        for pid, stop in ptrace.stops():
            self._stops.setdefault(pid, collections.deque()).append(stop)
        for work in list(self._work.values()):
            while self._work.get(work.pid) is work and (stops := self._stops.get(work.waits_for)):
                self._run(work, functools.partial(work.steps.send, stops.popleft()))
        if not self._work:
            self._end_strays()
            self._stops.clear()
            if self._strays_until <= time.monotonic():
                self._tracing = False
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _end_strays(self) -> None:
        """Ends what was born of a process that was killed meanwhile; it has run nothing."""
        for pid in self._stops.keys() - self._processes.keys():
            with contextlib.suppress(OSError):  # it has ended already
                self._add(pid, -1, 0)
                self._kill(pid)

    def _run(self, work: _Work, step: "Callable[[], int]") -> None:
        try:
            work.waits_for = step()
        except StopIteration:
            del self._work[work.pid]
            for queued in self._queued:
                if queued.pid == work.pid:
                    self._queued.remove(queued)
                    self._begin(queued)
                    break

    def _fail(self, work: _Work, number: int) -> None:
        self._strays_until = time.monotonic() + _STRAYS
        error = OSError(number, "a process ended or did not stop in time")
        self._run(work, lambda: work.steps.throw(error))

    def _seconds(self) -> "float | None":
        ends = [work.until for work in self._work.values()]
        ends += [copy.until for each in self._processes.values() for copy in each.copies]
        if self._tracing and not self._work:
            ends.append(time.monotonic() + _STRAYS / 50)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _give_up_what_is_late(self) -> None:
        now = time.monotonic()
        for work in list(self._work.values()):
            if work.until <= now:
                self._fail(work, errno.ETIMEDOUT)
        for process in self._processes.values():
            while process.copies and process.copies[0].until <= now:
                copy = process.copies.popleft()
                if copy.pause:
                    self._pause(process.pid)
                refuse((copy.reports,), errno.ETIMEDOUT)


def _can_trace() -> bool:
    """Tries whether this machine lets a process trace its child."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        ptrace.seize(pid)
    except OSError:
        return False
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return True
