"""Runs the console command on a machine that answers some system calls in another way.

``python other_kernel.py landlock_create_ruleset=38,unshare=1 doctor --json``: these calls fail with
these errors, as on an older kernel or in a container. 0 pretends that they worked.

A seccomp filter does it, which every process that is started from here inherits.
"""

import ctypes
import struct
import sys

from sanderling.cli import main
from sanderling.sandbox.lockdown._linux import PR_SET_NO_NEW_PRIVS, machine, prctl, syscall
from sanderling.sandbox.lockdown._syscalls import numbers

LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
SET_MODE_FILTER = 1


def answer(replies: dict[str, int]) -> None:
    table = numbers(machine())
    code = [(LOAD, 0, 0, 0)]  # the number of the call
    for name, error in replies.items():
        code += [(IF_EQUAL, 0, 1, table[name]), (RETURN, 0, 0, ERRNO | error)]
    code.append((RETURN, 0, 0, ALLOW))
    program = b"".join(struct.pack("<HBBI", *each) for each in code)
    held = ctypes.create_string_buffer(program, len(program))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    header = struct.pack("<H6xQ", len(code), ctypes.addressof(held))
    syscall("seccomp", SET_MODE_FILTER, 0, header)


if __name__ == "__main__":
    pairs = [reply.split("=") for reply in sys.argv[1].split(",")]
    answer({name: int(error) for name, error in pairs})
    sys.exit(main(sys.argv[2:]))
