"""The one error of this package. It has no import of its own, so every other module may use it."""


class LockdownError(OSError):
    """A layer of the walls could not be built; the process must not run foreign code.

    Args:
        layer: The layer that is missing, such as ``"landlock"``.
        reason: What the kernel said.
        remedy: What the person who runs this machine can do about it.
    """

    def __init__(self, layer: str, reason: str, remedy: str) -> None:
        super().__init__(f"{layer}: {reason}. {remedy}")
        self.layer = layer
        self.reason = reason
        self.remedy = remedy
