"""The image that containers are made of: found, pulled, or built once."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sanderling.errors import SandboxUnavailable

from ._docker_command import tail
from ._packages import checked

if TYPE_CHECKING:
    from ._docker_command import Docker

PYTHON = "python3"
_DEFAULT = "python:3.11-slim"
_MAKE = 1800.0  # seconds for a download or a build
_making = threading.Lock()  # an image is made once, however many want it


class Image:
    """What containers are made of.

    Args:
        image: An image that is there, or can be pulled.
        dockerfile: How to build one; None for Python with `packages`.
        packages: Requirements for pip, added to `image`.
        build: Whether one may be built.
    """

    def __init__(
        self, image: str | None, dockerfile: str | None, packages: Sequence[str], build: bool
    ) -> None:
        packages = checked(packages)
        if dockerfile is not None and (image is not None or packages):
            raise ValueError("dockerfile_content says all: leave out image and packages")
        if image is not None and not re.fullmatch(r"[\w.][\w.:/@-]*", image):
            raise ValueError(f"{image!r} is no name of an image")
        self._dockerfile = dockerfile
        self._build = build
        if dockerfile is None and (packages or image is None):
            self._dockerfile = f"FROM {image or _DEFAULT}\n" + _installing(packages)
        if self._dockerfile is None:
            self.name = image or _DEFAULT
        else:
            digest = hashlib.sha256(self._dockerfile.encode()).hexdigest()
            self.name = f"sanderling-sandbox:{digest[:16]}"

    def is_there(self, docker: Docker) -> bool:
        """Says whether the engine answers, and has it."""
        return docker.run("image", "inspect", "--format=ok", self.name).returncode == 0

    def make(self, docker: Docker) -> None:
        """Builds or pulls it, unless another thread has done so.

        Raises:
            SandboxUnavailable: It cannot be had.
        """
        with _making:
            if self.is_there(docker):
                return
            if self._dockerfile is None:
                what = f"the image {self.name} is not there and cannot be pulled"
                made = docker.run("pull", "--quiet", self.name, seconds=_MAKE)
            elif not self._build:
                raise SandboxUnavailable(
                    f"the image {self.name} is not there, and build_new_image=False."
                )
            else:
                what = f"the image {self.name} cannot be built"
                build = ("build", "--tag", self.name, "-")
                made = docker.run(*build, text=self._dockerfile, seconds=_MAKE)
            if made.returncode:
                raise SandboxUnavailable(f"{what}: {tail(made.stdout + made.stderr)}.")


def _installing(packages: Sequence[str]) -> str:
    if not packages:
        return ""
    pip = [PYTHON, "-m", "pip", "install", "--no-cache-dir"]
    return f"RUN {json.dumps([*pip, *packages])}\n"
