from __future__ import annotations

import sys
from types import ModuleType

import pytest


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes as if all keys and packages were there, for tests that ask nobody."""
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HF_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-test")
    monkeypatch.setenv("OPENAI_API_VERSION", "1")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-test")
    if "litellm" not in sys.modules:
        monkeypatch.setitem(sys.modules, "litellm", ModuleType("litellm"))
