"""What a locked process may still reach: plain data, made on the host, applied in the child."""

import json
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Policy:
    """The walls around one process."""

    read: tuple[str, ...]
    """Files and folders that may be read, with all beneath them."""
    write: tuple[str, ...]
    """Files and folders that may be read and changed."""
    workdir: str
    """The current folder of the process; it must be in `write`, too."""
    memory_bytes: int
    """Address space, with what the interpreter has mapped already."""
    file_bytes: int
    """Largest size of one file."""
    open_files: int
    """Number of descriptors."""
    cpu_seconds: int | None = None
    """Processor time until the kernel kills the process; None for no limit."""
    namespaces: bool = False
    """Whether the process gets namespaces and a root of its own."""
    workdir_bytes: int | None = None
    """With namespaces: the work folder is an empty tmpfs of this size, gone with the process. None
    keeps the host's folder, without a quota."""
    workdir_files: int = 65_536
    """With `workdir_bytes`: how many files and folders the work folder can hold."""

    def to_json(self) -> str:
        """Returns the policy as one JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Policy":
        """Loads what `to_json` wrote.

        Raises:
            ValueError: `text` is not a policy.
        """
        data = json.loads(text)
        known = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or data.keys() != known:
            raise ValueError(f"not a policy: it must be an object with the keys {sorted(known)}")
        return cls(**{**data, "read": tuple(data["read"]), "write": tuple(data["write"])})
