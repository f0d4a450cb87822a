"""When the kernel lets a signal in: never while it reads a frame."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from sanderling.sandbox.kernel import Channel, Frame, Interrupts, Mailbox

REPLY = Frame("ret", {"id": 7}, [], tagged=False)


class SignalWhileReading(Channel):
    """A channel where SIGINT comes while a frame is read."""

    def __init__(self) -> None:
        self.finished = False

    def wait(self) -> None:
        """There is something to read at once."""

    def read(self) -> Frame:
        """Reads a frame."""
        signal.raise_signal(signal.SIGINT)
        self.finished = True
        return REPLY


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    before = signal.getsignal(signal.SIGINT)
    interrupts = Interrupts()
    interrupts.start_step()
    yield interrupts
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_until_a_frame_is_read(interrupts: Interrupts) -> None:
    channel = SignalWhileReading()
    mailbox = Mailbox(channel, interrupts)
    mailbox.expect(7)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - released within, as a step is
        interrupts.release()
        mailbox.wait(7)
    assert channel.finished
    assert interrupts.fired


def test_a_signal_that_is_ahead_of_its_step_ends_it(interrupts: Interrupts) -> None:
    interrupts.hold()
    signal.raise_signal(signal.SIGINT)
    interrupts.start_step()
    with pytest.raises(KeyboardInterrupt):
        interrupts.release()
    assert interrupts.fired


def test_a_signal_that_came_too_late_for_a_step_does_not_end_the_next(
    interrupts: Interrupts,
) -> None:
    interrupts.hold()
    signal.raise_signal(signal.SIGINT)
    interrupts.forget()
    interrupts.start_step()
    interrupts.release()
    assert not interrupts.fired
