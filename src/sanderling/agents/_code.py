"""The agent that acts by writing Python."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sanderling.console import RunPrinter
from sanderling.loop import CodeAction, CodeTags
from sanderling.sandbox import BASE_BUILTIN_MODULES, ToolSpec, create_interpreter

from ._base import MultiStepAgent
from ._prompts import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Action
    from sanderling.models import Model
    from sanderling.sandbox import Interpreter
    from sanderling.tools import Tool

    from ._conversation import Conversation
    from ._prompts import PromptTemplates


class CodeAgent(MultiStepAgent):
    """Lets the model write Python, and runs it inside walls that the kernel enforces.

    The code runs in a process of its own; tools run here, called back by name.

    Args:
        tools: See `MultiStepAgent`, as for all arguments not listed here.
        model: See there.
        prompt_templates: See there.
        additional_authorized_imports: Modules that the code may import beside
            `sanderling.sandbox.BASE_BUILTIN_MODULES`; ``"pkg"`` covers its submodules, ``"*"`` all.
        executor_type: Where the code runs: ``"local"``, a locked process of this machine;
            ``"docker"``, a container; ``"wasm"``, Pyodide under Deno; or ``"inprocess"``, this very
            process, without walls, for code that you trust.
        executor_kwargs: Settings of the sandbox, such as ``timeout_seconds``.
        max_print_outputs_length: How many characters a step may print; the rest is cut out.
        code_block_tags: The marks around code: ``"markdown"`` or ``(opening, closing)``; by default
            those of the model's profile, else ``<code>`` and ``</code>``.

    Raises:
        ValueError: There is no such executor type, or it has no such setting.
    """

    _templates_name = "code_agent"

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        additional_authorized_imports: Sequence[str] | None = None,
        executor_type: str = "local",
        executor_kwargs: Mapping[str, Any] | None = None,
        max_print_outputs_length: int | None = None,
        code_block_tags: Literal["markdown"] | tuple[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(tools, model, prompt_templates, **kwargs)
        self.additional_authorized_imports = list(additional_authorized_imports or ())
        self.executor_type = executor_type
        self.executor_kwargs = dict(executor_kwargs or {})
        self.max_print_outputs_length = max_print_outputs_length
        self._tags = self._chosen_tags(code_block_tags)
        self._new_interpreter().close()  # starts nothing: tells now what could not work later

    @property
    def authorized_imports(self) -> list[str]:
        """All modules that the code may import."""
        return sorted({*BASE_BUILTIN_MODULES, *self.additional_authorized_imports})

    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""
        imports = self.authorized_imports
        return render(
            self.prompt_templates["system_prompt"],
            tools=list(self.tools.values()),
            managed_agents=[],
            authorized_imports="any package" if "*" in imports else ", ".join(imports),
            custom_instructions=self.instructions,
            code_block_opening_tag=self._tags.opening,
            code_block_closing_tag=self._tags.closing,
        )

    def _action(self) -> Action:
        profile = self._profile
        if profile is None:
            return CodeAction(self._tags, stream=self.stream_outputs)
        options = dict(profile.options)
        if profile.grammar is not None:
            options["grammar"] = profile.grammar
        return CodeAction(self._tags, profile.stop_sequences, options, self.stream_outputs)

    def _interpreter(self, conversation: Conversation) -> Interpreter:
        if conversation.interpreter is None:
            conversation.interpreter = self._new_interpreter()
            conversation.interpreter.set_tools(
                [ToolSpec.of(t.name, t.signature, t.description) for t in self.tools.values()]
            )
        if conversation.state:
            conversation.interpreter.set_variables(conversation.state)
        return conversation.interpreter

    def _new_interpreter(self) -> Interpreter:
        return create_interpreter(
            self.executor_type,
            additional_authorized_imports=self.additional_authorized_imports,
            max_print_outputs_length=self.max_print_outputs_length,
            **self.executor_kwargs,
        )

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger, code_marks=[self._tags.opening])

    def _chosen_tags(self, given: Literal["markdown"] | tuple[str, str] | None) -> CodeTags:
        if given == "markdown":
            return CodeTags("```python", "```")
        if given is None:
            given = self._profile.code_block_tags if self._profile is not None else None
        return CodeTags() if given is None else CodeTags(*given)


def _spec(tool: Tool) -> ToolSpec:
    """Describes a tool to the sandbox, where only its name, signature and text are known."""
    return ToolSpec(
        name=tool.name,
        signature=_signature_text(tool.signature),
        doc=tool.description,
        final=tool.name == "final_answer",
    )


def _signature_text(signature: inspect.Signature) -> str:
    """Writes a signature that can be read without knowing this process's classes and values."""
    parameters = []
    for parameter in signature.parameters.values():
        default = parameter.default
        plain = default is None or isinstance(default, bool | int | float | str)
        parameters.append(
            parameter
            if plain or default is parameter.empty
            else parameter.replace(default=Ellipsis)
        )
    return str(signature.replace(parameters=parameters))
