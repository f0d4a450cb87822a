"""Runs a classic BPF program of a seccomp filter, as the kernel would: to see its verdicts."""

import struct
from collections.abc import Sequence


def run_filter(program: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> int:
    """Returns the verdict on one system call.

    Raises:
        ValueError: The program holds an instruction that is not known here, or runs off its end.
    """
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *words)
    code = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while at < len(code):
        operation, if_true, if_false, operand = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x15:
            at += if_true if accumulator == operand else if_false
        elif operation == 0x35:
            at += if_true if accumulator >= operand else if_false
        elif operation == 0x06:
            return int(operand)
        else:
            raise ValueError(f"unknown instruction {operation:#x}")
    raise ValueError("the program has no end")
