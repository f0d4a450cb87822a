"""Which packages have to be installed, so that modules can be imported, and whether they are here.

The names come from the developer's list of authorized imports, never from code that a model wrote.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec

# Modules that another package has than the one of their name.
_PACKAGES = {
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "pptx": "python-pptx",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "umap": "umap-learn",
    "usb": "pyusb",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}


def packages_for(imports: Sequence[str]) -> dict[str, str]:
    """Returns the packages that authorized imports need, by the name of the module.

    Python's own modules need none, and ``"*"`` names none. A package that is called otherwise than
    its module and is not known here has to be named by a setting.
    """
    modules = [name.partition(".")[0] for name in imports]
    return {
        name: _PACKAGES.get(name, name)
        for name in modules
        if name.isidentifier() and name not in sys.stdlib_module_names
    }


def require_installed(imports: Sequence[str]) -> None:
    """Checks that authorized imports are there for code that runs with this Python.

    Raises:
        ValueError: One is not.
    """
    needed = packages_for(imports)
    missing = [name for name in needed if sys.modules.get(name) is None and find_spec(name) is None]
    if missing:
        packages = " ".join(dict.fromkeys(needed[name] for name in missing))
        raise ValueError(
            f"The code may import {', '.join(missing)}, and has the packages of this Python, where "
            f"there is no such module. Install it with: pip install {packages} (or leave it out of "
            "the authorized imports)."
        )


def checked(packages: Sequence[str]) -> list[str]:
    """Returns requirements for pip.

    Raises:
        ValueError: They are no list, or one is an option.
    """
    if isinstance(packages, str):
        raise ValueError("packages is a list of requirements, not one string")
    if any(not re.match(r"\w", package) for package in packages):
        raise ValueError(f"packages are requirements such as 'numpy>=2', not {packages!r}")
    return list(packages)
