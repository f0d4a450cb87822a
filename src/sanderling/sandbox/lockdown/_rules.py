"""What the seccomp filter says about each system call: data, by name, with the reason.

A call that no rule names is refused with EPERM, or with ENOSYS when it is younger than this list
(see `_syscalls.HIGHEST_KNOWN`), so that the C library takes its older way.
"""

import errno
import functools
from dataclasses import dataclass

ALLOW = 0x7FFF0000  # SECCOMP_RET_ALLOW
KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS
NOTIFY = 0x7FC00000  # SECCOMP_RET_USER_NOTIF: ask the holder of the listener
TRACE = 0x7FF00000  # SECCOMP_RET_TRACE: stop for the tracer; ENOSYS where there is none
_ERRNO = 0x00050000  # SECCOMP_RET_ERRNO

Verdict = int


def fail(code: int) -> Verdict:
    """Returns the verdict "do nothing, return this errno" (0: pretend that it worked)."""
    return _ERRNO | code


DENY = fail(errno.EPERM)
ABSENT = fail(errno.ENOSYS)
PRETEND = fail(0)


@dataclass(frozen=True)
class Where:
    """A condition: the low 32 bits of an argument, masked, are one of `values`.

    To the kernel all arguments that the rules look at have 32 bits, or mean nothing beyond them.
    """

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class Case:
    """The verdict `then`, if all conditions hold."""

    conditions: tuple[Where, ...]
    then: Verdict


@dataclass(frozen=True, eq=False)
class Rule:
    """The verdict about some calls: of the first case that fits, or else `otherwise`.

    It equals itself alone: to look it up by all that it says takes longer than to make it.
    """

    calls: str
    why: str
    otherwise: Verdict
    cases: tuple[Case, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Returns the names of the calls."""
        return tuple(self.calls.split())


_ALLOWED = {
    "memory of the process, bounded by RLIMIT_AS": "munmap mprotect mremap brk msync",
    "open files: each was opened under Landlock or handed over by the host": """
        read write close lseek pread64 pwrite64 readv writev preadv pwritev
        dup dup2 dup3 close_range fsync fdatasync ftruncate readahead
        copy_file_range sendfile pipe pipe2 eventfd eventfd2
        timerfd_create timerfd_settime timerfd_gettime""",
    "paths: Landlock decides": """
        creat mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat
        rename renameat renameat2 readlink readlinkat access faccessat faccessat2
        getdents getdents64 getcwd chdir fchdir umask""",
    "metadata: Landlock does not cover it; hidden only by an own root": """
        stat lstat fstat newfstatat statx statfs fstatfs""",
    "waiting": """
        select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
        epoll_pwait2 pause nanosleep clock_nanosleep getitimer setitimer alarm sched_yield
        restart_syscall""",
    "threads": """
        futex futex_wait futex_wake futex_waitv futex_requeue set_robust_list set_tid_address rseq
        exit exit_group wait4 waitid""",
    "signals that stay inside": """
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend
        sigaltstack""",
    "facts about this process and machine": """
        getpid gettid getppid getuid geteuid getgid getegid getgroups getresuid getresgid
        getpgrp getpgid getsid getrlimit getrusage times uname sysinfo getcpu getrandom
        time gettimeofday clock_gettime clock_getres getpriority sched_getaffinity sched_getparam
        sched_getscheduler sched_get_priority_max sched_get_priority_min""",
    "talk over sockets that exist: none can be made, connected or bound. Without sendmsg no "
    "descriptor can be sent, and so be hidden from who copies the process": """
        shutdown getsockname getpeername""",
}

FORK = 0x01200011
"""The flags of fork(): ``CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD``."""
FORK_SIBLING = FORK | 0x00008000
"""The same with ``CLONE_PARENT``: the new process is a child of this one's parent."""
_SIGNALS = "kill tgkill"
# CLONE_VM | _FS | _FILES | _SIGHAND | _THREAD | _SYSVSEM | _SETTLS | _PARENT_SETTID |
# _CHILD_CLEARTID, as glibc makes a thread; musl adds CLONE_DETACHED, which means nothing.
_NEW_THREAD = (0x003D0F00, 0x007D0F00)
_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL = 0, 1, 2, 3, 4
_F_GETLK, _F_SETLK, _F_SETLKW = 5, 6, 7
_F_OFD_GETLK, _F_OFD_SETLK, _F_OFD_SETLKW = 36, 37, 38
_F_DUPFD_CLOEXEC, _F_GETPIPE_SZ = 1030, 1032
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE_MASK = 1, 1, 0xF
_SOL_SOCKET = 1
_SO_SNDBUF, _SO_RCVBUF, _SO_KEEPALIVE, _SO_RCVTIMEO, _SO_SNDTIMEO = 7, 8, 9, 20, 21
_SO_REUSEADDR, _SO_TYPE, _SO_ERROR, _SO_LINGER, _SO_ACCEPTCONN = 2, 3, 4, 13, 30
_SO_PROTOCOL, _SO_DOMAIN = 38, 39
_MSG_PEEK, _MSG_TRUNC, _MSG_DONTWAIT, _MSG_EOR = 2, 0x20, 0x40, 0x80
_MSG_WAITALL, _MSG_NOSIGNAL, _MSG_MORE, _MSG_CMSG_CLOEXEC = 0x100, 0x4000, 0x8000, 0x40000000
_RECEIVE = _MSG_PEEK | _MSG_TRUNC | _MSG_DONTWAIT | _MSG_WAITALL | _MSG_NOSIGNAL | _MSG_CMSG_CLOEXEC
_MAP_HUGETLB = 0x40000
# linux/mman.h: NORMAL to DONTNEED, FREE, DONTFORK, DOFORK, UNMERGEABLE, HUGEPAGE to KEEPONFORK,
# POPULATE_READ, POPULATE_WRITE, GUARD_INSTALL, GUARD_REMOVE.
_ADVICE = (*range(5), 8, 10, 11, *range(13, 20), 22, 23, 102, 103)
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_PR_GET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME = 2, 3, 15, 16
_PR_SVE_GET_VL, _PR_SET_VMA = 51, 0x53564D41
_TCGETS, _TIOCGWINSZ = 0x5401, 0x5413
_FIONREAD, _FIONBIO, _FIONCLEX, _FIOCLEX = 0x541B, 0x5421, 0x5450, 0x5451
_ARCH_GET_XCOMP_SUPP, _ARCH_GET_XCOMP_PERM, _ARCH_REQ_XCOMP_PERM = 0x1021, 0x1022, 0x1023
_O_ACCMODE, _O_WRONLY, _O_RDWR, _O_TRUNC, _O_ASYNC = 3, 1, 2, 0x200, 0x2000


@functools.lru_cache(maxsize=1)
def supervision() -> tuple[Rule, ...]:
    """Returns the rules of a filter that asks the holder of its listener, and stops nothing else.

    The filter that does stop calls is loaded afterwards.
    """
    return (Rule(_SIGNALS, "a copy has another number, which no filter can know", NOTIFY),)


@functools.lru_cache(maxsize=4)
def rules(own_pid: int | None, *, truncate_by_path: bool = True) -> tuple[Rule, ...]:
    """Returns the rules for one process; no call is named twice.

    Args:
        own_pid: The only process that may be signalled, as this process's ``getpid()`` gives it.
            None is for a process that is copied by fork: a tracer decides when it may fork, and
            the holder of the listener of `supervision` decides on signals.
        truncate_by_path: False where Landlock does not govern truncation (below ABI 3).
    """
    this_process = (0,) if own_pid is None else (0, own_pid)
    forks = () if own_pid is not None else (Case((Where(0, (FORK, FORK_SIBLING)),), TRACE),)
    return (
        *(Rule(calls, why, ALLOW) for why, calls in _ALLOWED.items()),
        Rule(
            "clone",
            "threads and, for a tracer, forks: by all of their flags, so that none changes what a "
            "new process is",
            DENY,
            (Case((Where(0, _NEW_THREAD),), ALLOW), *forks),
        ),
        Rule(
            "clone3",
            "its flags lie behind a pointer; the C library falls back to clone",
            ABSENT,
        ),
        Rule(
            "fcntl",
            "no F_SETOWN, F_SETSIG or O_ASYNC: with them the kernel signals any process of this "
            "user; no larger pipes, leases or notifications either",
            DENY,
            (
                Case((Where(1, (_F_SETFL,)), Where(2, (0,), _O_ASYNC)), ALLOW),
                # A lock of the process never keeps the process itself out: it needs no keeping.
                Case((Where(1, (_F_SETLK, _F_SETLKW)),), PRETEND),
                Case((Where(1, (_F_OFD_GETLK, _F_OFD_SETLK, _F_OFD_SETLKW)),), fail(errno.EINVAL)),
                *_one_of(
                    1,
                    *(_F_DUPFD, _F_DUPFD_CLOEXEC, _F_GETFD, _F_SETFD, _F_GETFL),
                    *(_F_GETLK, _F_GETPIPE_SZ),
                ),
            ),
        ),
        Rule(
            "flock",
            "a lock on a library would keep the host and all other sandboxes out",
            PRETEND,
        ),
        Rule(
            "fallocate",
            "no space is reserved faster than it can be written; the C library writes instead",
            fail(errno.EOPNOTSUPP),
        ),
        Rule(
            "fadvise64",
            "the page cache is shared with the host",
            PRETEND,
        ),
        Rule(
            "preadv2 pwritev2",
            "without flags: RWF_NOWAIT tells what is in the page cache",
            fail(errno.EOPNOTSUPP),
            _one_of(5, 0),
        ),
        Rule(
            "mmap",
            "without huge pages: they are taken from a pool of the whole machine",
            fail(errno.EINVAL),
            (Case((Where(3, (0,), _MAP_HUGETLB),), ALLOW),),
        ),
        Rule(
            "madvise",
            "what allocators use; no merging with pages of other processes, no eviction of shared "
            "ones, no poisoning",
            fail(errno.EINVAL),
            _one_of(2, *_ADVICE),
        ),
        Rule(
            "sendto",
            "no out-of-band data, zero copy or fast open",
            DENY,
            _no_flags_but(3, _MSG_DONTWAIT | _MSG_EOR | _MSG_NOSIGNAL | _MSG_MORE),
        ),
        Rule("recvfrom", "no out-of-band data, no error queue", DENY, _no_flags_but(3, _RECEIVE)),
        Rule("recvmsg", "the same", DENY, _no_flags_but(2, _RECEIVE)),
        Rule(
            "getsockopt",
            "the kind and state of the socket, not who is at the other end",
            DENY,
            (
                Case(
                    (
                        Where(1, (_SOL_SOCKET,)),
                        Where(
                            2,
                            (
                                *(_SO_REUSEADDR, _SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF),
                                *(_SO_KEEPALIVE, _SO_LINGER, _SO_RCVTIMEO, _SO_SNDTIMEO),
                                *(_SO_ACCEPTCONN, _SO_PROTOCOL, _SO_DOMAIN),
                            ),
                        ),
                    ),
                    ALLOW,
                ),
            ),
        ),
        Rule(
            "socketpair",
            "asyncio wakes itself through one; a datagram pair could send to any socket by path",
            DENY,
            (
                Case(
                    (Where(0, (_AF_UNIX,)), Where(1, (_SOCK_STREAM,), _SOCK_TYPE_MASK)),
                    ALLOW,
                ),
            ),
        ),
        Rule(
            "setsockopt",
            "buffer sizes and time-outs; no packet filter programs",
            DENY,
            (
                Case(
                    (
                        Where(1, (_SOL_SOCKET,)),
                        Where(
                            2,
                            (_SO_SNDBUF, _SO_RCVBUF, _SO_KEEPALIVE, _SO_RCVTIMEO, _SO_SNDTIMEO),
                        ),
                    ),
                    ALLOW,
                ),
            ),
        ),
        Rule(
            _SIGNALS,
            "signals to itself (abort, raise_signal, pthread_kill)",
            ALLOW if own_pid is None else DENY,
            () if own_pid is None else _one_of(0, own_pid),
        ),
        Rule(
            "prlimit64 sched_setaffinity",
            "of itself: Landlock does not keep them from other processes",
            DENY,
            _one_of(0, *this_process),
        ),
        Rule(
            "prctl",
            "names of threads and mappings, and reading; a tracer makes a copy ask again to die "
            "with its parent, and the copy cannot take that back",
            DENY,
            (
                Case((Where(0, (_PR_SET_PDEATHSIG,)), Where(1, (_SIGKILL,))), ALLOW),
                *_one_of(
                    0,
                    *(_PR_GET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME),
                    *(_PR_SVE_GET_VL, _PR_SET_VMA),
                ),
            ),
        ),
        Rule(
            "arch_prctl",
            "permission to use the AMX registers",
            DENY,
            _one_of(0, _ARCH_GET_XCOMP_SUPP, _ARCH_GET_XCOMP_PERM, _ARCH_REQ_XCOMP_PERM),
        ),
        Rule(
            "ioctl",
            "is it a terminal, how much is there to read, block or not; nothing is typed into a "
            "terminal",
            fail(errno.ENOTTY),
            _one_of(1, _TCGETS, _TIOCGWINSZ, _FIONREAD, _FIONBIO, _FIONCLEX, _FIOCLEX),
        ),
        Rule(
            "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat "
            "utime utimes utimensat futimesat",
            "Landlock does not cover them; shutil.copy2, tarfile and zipfile must not fail",
            PRETEND,
        ),
        Rule(
            "listxattr llistxattr flistxattr getxattr lgetxattr fgetxattr setxattr lsetxattr "
            "fsetxattr removexattr lremovexattr fremovexattr "
            "listxattrat getxattrat setxattrat removexattrat",
            "Landlock does not cover them; shutil.copy2 understands this error, not EPERM",
            fail(errno.EOPNOTSUPP),
        ),
        Rule(
            "mseal map_shadow_stack cachestat",
            "the C library asks whether the kernel has them and does without",
            ABSENT,
        ),
        *_opening(truncate_by_path),
    )


@functools.lru_cache(maxsize=8)
def count_allowed(rules: tuple[Rule, ...]) -> int:
    """Returns how many calls may do something, some of them only with certain arguments."""
    return sum(
        len(rule.names())
        for rule in rules
        if {ALLOW, TRACE} & {rule.otherwise, *(case.then for case in rule.cases)}
    )


def _one_of(argument: int, *values: int) -> tuple[Case, ...]:
    return (Case((Where(argument, values),), ALLOW),)


def _no_flags_but(argument: int, flags: int) -> tuple[Case, ...]:
    return (Case((Where(argument, (0,), 0xFFFFFFFF & ~flags),), ALLOW),)


def _opening(truncate_by_path: bool) -> tuple[Rule, ...]:
    if truncate_by_path:
        return (Rule("open openat openat2 truncate", "paths: Landlock decides", ALLOW),)
    why = "Landlock below ABI 3 lets a file be emptied that it lets nobody write"

    def flags_at(argument: int) -> tuple[Case, ...]:
        return (
            Case((Where(argument, (0,), _O_TRUNC),), ALLOW),
            Case((Where(argument, (_O_WRONLY, _O_RDWR), _O_ACCMODE),), ALLOW),
        )

    return (
        Rule("open", why, DENY, flags_at(1)),
        Rule("openat", why, DENY, flags_at(2)),
        Rule("openat2", why + "; its flags lie behind a pointer", ABSENT),
        Rule("truncate", why, DENY),
    )
