"""What an interpreter needs to read: its library, its packages, and a little of the machine."""

import functools
import os
import sys

# Of the machine, for any interpreter. What does not exist is passed over.
_SYSTEM = (
    *("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache"),  # shared libraries
    *("/usr/share/zoneinfo", "/etc/localtime"),
    *("/usr/share/fonts", "/usr/share/fontconfig", "/etc/fonts"),
    *("/dev/urandom", "/dev/zero"),
    # How many processors there are, and how much memory: thread pools size themselves by these.
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat"),
    "/sys/fs/cgroup/cpu.max",
    *("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)


@functools.cache
def interpreter_paths() -> tuple[str, ...]:
    """Returns the files and folders that this interpreter and its installed packages read.

    The source of editable installs is not among them, nor the user's site-packages.
    """
    # Here, because the child imports this module with its package and needs none of them.
    import mimetypes
    import sysconfig

    paths = sysconfig.get_paths()
    listed = (
        f"{sys.base_prefix}/lib",  # libpython may lie beside the standard library
        f"{sys.prefix}/lib",
        f"{sys.prefix}/pyvenv.cfg",
        *(paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *_SYSTEM,
        *map(str, mimetypes.knownfiles),
    )
    return tuple(dict.fromkeys(path for path in listed if os.access(path, os.R_OK)))
