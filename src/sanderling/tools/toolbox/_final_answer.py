"""The tool that ends a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sanderling.tools._tool import Tool

if TYPE_CHECKING:
    from sanderling.messages import JSONObject


class FinalAnswerTool(Tool):
    """Ends the run with an answer. A subclass may check or change the answer in `forward`.

    Args:
        answer_schema: JSON schema that the model is shown of the answer. The answer is not checked
            against it here: who asks for answers of a type checks them when they come.
    """

    name = "final_answer"
    description = "Gives the final answer to the task, which ends the run."
    inputs = {"answer": {"type": "any", "description": "The answer, as any kind of value."}}
    output_type = "any"
    answer_schema: JSONObject | None = None

    def __init__(self, answer_schema: JSONObject | None = None) -> None:
        super().__init__()
        # To hand the answer on takes no thread; what a subclass does with it may take long.
        self.thread_bound = self.thread_bound or type(self) is FinalAnswerTool
        if answer_schema is not None:
            self.answer_schema = answer_schema
            schema = json.dumps(answer_schema, ensure_ascii=False)
            told = f"The answer: plain data that fits this JSON schema: {schema}"
            self.inputs = {"answer": {"type": "any", "description": told}}

    def forward(self, answer: Any) -> Any:
        """Returns the answer as it is."""
        return answer

    def validate_arguments(self, arguments: object) -> dict[str, object]:
        """Returns arguments that `forward` can be called with. See `Tool.validate_arguments`.

        Models often give what the answer consists of in the place of ``answer``: then all of it is
        the answer. What they give beside an answer of no given type, such as a comment, is not.
        """
        if isinstance(arguments, Mapping) and arguments and self.inputs.keys() == {"answer"}:
            if "answer" not in arguments:
                arguments = {"answer": dict(arguments)}
            elif self.answer_schema is None:
                arguments = {"answer": arguments["answer"]}
        return super().validate_arguments(arguments)

    def to_json_schema(self) -> JSONObject:
        """Returns the tool as an entry of the ``tools`` of an OpenAI chat request."""
        if self.answer_schema is None:
            return super().to_json_schema()
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {
                    "type": "object",
                    "properties": {"answer": {**self.answer_schema}},
                    "required": ["answer"],
                },
            },
        }
