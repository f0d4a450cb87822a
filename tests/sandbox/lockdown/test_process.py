"""`harden_process`: what a child inherited is gone."""

from support.locked import Station


def test_a_session_of_its_own(locked: Station, namespaces: bool) -> None:
    ended = locked.run("import os; said = os.getsid(0) == os.getpid()", namespaces=namespaces)

    assert ended.said == "True"


def test_it_dies_with_its_parent(locked: Station, namespaces: bool) -> None:
    ended = locked.run(
        "import ctypes; told = ctypes.c_int()\n"
        "ctypes.CDLL(None).prctl(2, ctypes.byref(told)); said = told.value  # PR_GET_PDEATHSIG",
        namespaces=namespaces,
    )

    assert ended.said == "9"


def test_only_the_kept_descriptors_stay_open(locked: Station) -> None:
    ended = locked.run(
        "import os, sys; sys.path.insert(0, package.removesuffix('/lockdown')); import lockdown\n"
        "os.dup2(1, 7); os.dup2(1, 70); os.dup2(1, 700)\n"
        "lockdown.harden_process([0, 1, 2, 70])\n"
        "said = sorted(map(int, os.listdir('/proc/self/fd')))  # 3 is the listing's own",
        lock=False,
    )

    assert ended.said == "[0, 1, 2, 3, 70]"


def test_all_signals_are_heard(locked: Station) -> None:
    ended = locked.run(
        "import sys; sys.path.insert(0, package.removesuffix('/lockdown'))\n"
        "import lockdown, signal\n"
        "for number in (signal.SIGCHLD, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "lockdown.harden_process([0, 1, 2])\n"
        "said = [signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,\n"
        "    signal.getsignal(signal.SIGINT) == signal.default_int_handler,\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()]",
        lock=False,
    )

    assert ended.said == "[True, True, True]"


def test_the_leader_of_a_session_may_call_it_again(locked: Station) -> None:
    ended = locked.run(
        "import os, sys; sys.path.insert(0, package.removesuffix('/lockdown')); import lockdown\n"
        "for _ in range(2): lockdown.harden_process([0, 1, 2])\n"
        "said = os.getsid(0) == os.getpid()",
        lock=False,
    )

    assert ended.said == "True"


def test_no_capability_is_left(locked: Station) -> None:
    ended = locked.run(
        "import os, sys; sys.path.insert(0, package.removesuffix('/lockdown'))\n"
        "from lockdown._process import drop_capabilities\n"
        "drop_capabilities()\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "said = [int(status[f'Cap{kind}'], 16) for kind in ('Inh', 'Prm', 'Eff', 'Amb')]\n"
        "if os.getuid() == 0: said.append(int(status['CapBnd'], 16))",
        lock=False,
    )

    assert ended.said == ("[0, 0, 0, 0, 0]" if locked.user == 0 else "[0, 0, 0, 0]")


def test_no_process_of_the_same_user_may_trace_it(locked: Station, namespaces: bool) -> None:
    ended = locked.run(
        "import ctypes; said = ctypes.CDLL(None).prctl(3)  # PR_GET_DUMPABLE", namespaces=namespaces
    )

    assert ended.said == "0"
