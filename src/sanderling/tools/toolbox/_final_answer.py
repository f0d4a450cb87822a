"""The tool that ends a run."""

from __future__ import annotations

from typing import Any

from sanderling.tools._tool import Tool


class FinalAnswerTool(Tool):
    """Ends the run with an answer. A subclass may check or change the answer in `forward`."""

    name = "final_answer"
    description = "Gives the final answer to the task, which ends the run."
    inputs = {"answer": {"type": "any", "description": "The answer, as any kind of value."}}
    output_type = "any"

    def forward(self, answer: Any) -> Any:
        """Returns the answer as it is."""
        return answer
