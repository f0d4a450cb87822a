"""Ready-made tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._final_answer import FinalAnswerTool as FinalAnswerTool

__getattr__, __dir__, __all__ = lazy(__name__, {"FinalAnswerTool": "._final_answer"})
