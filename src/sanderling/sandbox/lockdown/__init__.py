"""Walls that the Linux kernel keeps: locks the current process for good.

Standard library only, and importable by itself as ``lockdown``: the child that is to be locked
imports it before it locks itself, and has nothing else of Sanderling.

Host: ``policy_for(workdir)``, sent over as JSON. Child: ``harden_process(keep)``, then
``lock(Policy.from_json(text))``, then the foreign code.
"""

from . import _ptrace as ptrace
from ._errors import LockdownError
from ._host import policy_for
from ._lock import lock, prepare
from ._notify import Notice, add_descriptor, answer, is_thread_of, next_notice
from ._pid_namespace import enter_pid_namespace
from ._policy import Policy
from ._probe import Layer, probe
from ._process import DIE_WITH_PARENT, die_with_parent, harden_process
from ._rules import FORK, FORK_SIBLING

__all__ = [
    "DIE_WITH_PARENT",
    "FORK",
    "FORK_SIBLING",
    "Layer",
    "LockdownError",
    "Notice",
    "Policy",
    "add_descriptor",
    "answer",
    "die_with_parent",
    "enter_pid_namespace",
    "harden_process",
    "is_thread_of",
    "lock",
    "next_notice",
    "policy_for",
    "prepare",
    "probe",
    "ptrace",
]
