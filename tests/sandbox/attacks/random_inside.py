"""Runs in the sandbox: makes system calls at random, from a seed."""

import collections
import ctypes
import mmap
import os
import random
import signal
import threading
import time
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSCALL = _LIBC.syscall
_SYSCALL.restype = ctypes.c_long
_SYSCALL.argtypes = [ctypes.c_ulong] * 7
_SIZE = 1 << 20
_STUCK = 0.2  # seconds
_EVERY = 50  # calls between two lines of progress
_WORD = (1 << 64) - 1
# These end or hold up the process, whatever their arguments are, so that it makes no more calls.
_LEFT_OUT = {
    "x86_64": {
        15: "rt_sigreturn",
        34: "pause",
        60: "exit",
        231: "exit_group",
        335: "uretprobe",
        336: "uprobe",
    },
    "aarch64": {93: "exit", 94: "exit_group", 139: "rt_sigreturn"},
}[os.uname().machine]
_NUMBERS = [
    *(0, 1, 2, 3, 4, 7, 8, 16, 64, 4096, 65_536, 1 << 20, 1 << 31, 1 << 32, 1 << 62),
    *(_WORD, _WORD - 99, 1 << 63, 0x7FFFFFFF, 0xFFFFFFFF),
]
_FORKS = [0x01200011, 0x01208011, 0x8011, 0x11, 0x003D0F00, 0x10000000, 0x4000]


class _Caller:
    """Makes calls.

    Args:
        seed: Where the numbers start.
        allowed: Numbers of calls that the filter lets pass, at least with some arguments.
        paths: Paths to name.
        processes: Numbers of processes to name.
    """

    def __init__(
        self, seed: int, allowed: "list[int]", paths: "list[str]", processes: "list[int]"
    ) -> None:
        self.chance = random.Random(seed)
        self.allowed = [number for number in allowed if number not in _LEFT_OUT]
        self.numbers = [*processes, os.getpid(), 0, 1, *_FORKS]
        self.space = mmap.mmap(-1, _SIZE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.space))
        self.made = 0
        self.results: collections.Counter[int] = collections.Counter()
        self.texts = []
        place = _SIZE // 2
        for path in (b".", b"file", b"folder", b"..", b"/", *map(os.fsencode, paths)):
            self.space[place : place + len(path) + 1] = path + b"\0"
            self.texts.append(self.start + place)
            place += 256

    def argument(self) -> int:
        """Picks an argument."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.25:
            return chance.randint(0, 10)  # a descriptor, a signal, a command
        if kind < 0.5:
            return self.start + chance.randrange(0, _SIZE // 2, 8)
        if kind < 0.6:
            return chance.choice(self.texts)
        if kind < 0.7:
            return chance.choice(_NUMBERS)
        if kind < 0.8:
            return chance.choice(self.numbers)
        if kind < 0.9:
            return chance.getrandbits(chance.randint(1, 32)) & chance.getrandbits(32)  # flags
        if kind < 0.95:
            return self.start + chance.randrange(0, _SIZE, mmap.PAGESIZE)
        return chance.getrandbits(64)

    def number(self) -> int:
        """Picks a call."""
        chance = self.chance
        kind = chance.random()
        if kind < 0.5:
            return chance.choice(self.allowed)
        if kind < 0.99:
            return chance.randint(0, 600)
        if kind < 0.999:
            return chance.choice(self.allowed) | 1 << 32
        # The filter ends the process for these.
        return chance.choice([0x40000000 | chance.randint(0, 600), _WORD, chance.getrandbits(64)])

    def fill(self) -> None:
        """Writes something where the calls look: words, and addresses of words."""
        for _ in range(8):
            place = self.chance.randrange(0, _SIZE // 2, 8)
            word = self.argument().to_bytes(8, "little")
            self.space[place : place + 8] = word

    def make(self, count: int) -> None:
        """Makes calls."""
        while self.made < count:
            number = self.number()
            if number in _LEFT_OUT:
                continue
            if self.made % 10 == 0:
                self.fill()
                _wake_up()
            if self.made % _EVERY == 0:
                print("made", self.made, flush=True)
            self.made += 1
            result = _SYSCALL(number, *(self.argument() for _ in range(6)))
            self.results[ctypes.get_errno() if result == -1 else 0] += 1

    def found(self) -> bool:
        """Whether a secret has come into the space that the calls wrote to."""
        return self.space.find(b"canary-") >= 0


def _wake_up() -> None:
    """Makes a signal come soon and often: it ends calls that wait."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)


def _end_if_stuck(caller: _Caller) -> None:
    """Ends the process if the calls do not go on."""
    while True:
        before = caller.made
        time.sleep(_STUCK)
        if caller.made == before:
            os._exit(1)


def make_calls(count: int, **about: Any) -> "dict[str, Any]":
    """Makes so many calls; returns how many, and how often each error came."""
    caller = _Caller(**about)
    threading.Thread(target=_end_if_stuck, args=(caller,), daemon=True).start()
    caller.make(count)
    return {"made": caller.made, "results": dict(caller.results), "found": caller.found()}
