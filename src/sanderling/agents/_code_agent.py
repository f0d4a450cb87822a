"""The agent that acts by writing Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from sanderling._arguments import require_list
from sanderling.console import RunPrinter
from sanderling.loop import MAX_LOGS, CodeAction, CodeTags
from sanderling.runtime import Sandbox
from sanderling.sandbox import BASE_BUILTIN_MODULES, ToolSpec

from ._agent import MultiStepAgent
from ._policies import with_memory
from ._prompts import render
from ._validation import check_variables, defines

if TYPE_CHECKING:
    from collections.abc import Callable

    from sanderling.loop import Action
    from sanderling.memory import AgentMemory
    from sanderling.messages import ImageSource
    from sanderling.models import Model
    from sanderling.runtime import FilePath, Session
    from sanderling.sandbox import PythonExecutor
    from sanderling.tools import Tool

    from ._prompts import PromptTemplates

# Where code runs by default: a locked process, or the first place with walls that works here.
_DEFAULT_TYPE = "local" if sys.platform == "linux" else "auto"


class CodeAgent(MultiStepAgent):
    """Lets the model write Python, and runs it inside walls that the kernel enforces.

    The code runs in a process of its own; tools run here, called back by name.

    Args:
        tools: See `MultiStepAgent`, as for all arguments not listed here.
        model: See there.
        prompt_templates: See there.
        additional_authorized_imports: Modules that the code may import beside
            `sanderling.sandbox.BASE_BUILTIN_MODULES`; ``"pkg"`` covers its submodules, ``"*"`` all.
            Those of packages have to be installed where the code runs, or are installed there.
        executor: Runs the code, in the place of what the next two would make: an executor of this
            library, or of your own; see `PythonExecutor`. It is yours: all runs of the agent share
            it and its variables, and only `cleanup` ends it.
        executor_type: Where the code runs: ``"local"``, a locked process of this machine, the
            default on Linux; ``"auto"``, the default elsewhere, the first place with walls;
            ``"docker"``, a container; ``"wasm"``, Pyodide under Deno; ``"e2b"``, ``"modal"`` or
            ``"blaxel"``, a machine of theirs; or ``"inprocess"``, this very process, without walls,
            for code that you trust.
        executor_kwargs: Settings of the executor, such as ``timeout_seconds``.
        max_print_outputs_length: How many characters a step may print, 50,000 by default; the rest
            is cut out.
        code_block_tags: The marks around code: ``"markdown"`` or ``(opening, closing)``; by default
            those of the model's profile, else ``<code>`` and ``</code>``.
        use_structured_outputs_internally: Make the model reply with a JSON object of thought and
            code, for providers that can be held to a JSON schema.
        use_e2b_executor: The old way to say ``executor_type="e2b"``.
        keep_files: A folder that gets copies of what the code of each run has written; see `run`.

    Raises:
        ValueError: There is no such executor type, two settings contradict each other, or the code
            runs with this Python and a module that it may import is not installed.
        TypeError: The executor has no such setting.
    """

    _templates_name = "code_agent"
    _writes_code = True
    _python = (*MultiStepAgent._python, "executor")
    _saved = (
        *MultiStepAgent._saved,
        "authorized_imports",
        "max_print_outputs_length",
        "code_block_tags",
        "use_structured_outputs_internally",
    )
    _by_argument = MappingProxyType(
        {"executor_type": _DEFAULT_TYPE, "executor_kwargs": {}, "keep_files": None}
    )

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]],
        model: Model | Callable[..., Any],
        prompt_templates: PromptTemplates | None = None,
        additional_authorized_imports: Sequence[str] | None = None,
        planning_interval: int | None = None,
        executor: PythonExecutor | Callable[..., object] | None = None,
        executor_type: str | None = None,
        executor_kwargs: Mapping[str, Any] | None = None,
        max_print_outputs_length: int | None = None,
        stream_outputs: bool = False,
        use_structured_outputs_internally: bool = False,
        code_block_tags: Literal["markdown"] | tuple[str, str] | None = None,
        use_e2b_executor: bool = False,
        *,
        keep_files: FilePath | None = None,
        **kwargs: Any,
    ) -> None:
        if use_structured_outputs_internally and kwargs.get("grammar") is not None:
            raise ValueError("structured outputs are a grammar already: leave out grammar")
        if use_structured_outputs_internally:
            self._templates_name = "structured_code_agent"
        self.use_structured_outputs_internally = use_structured_outputs_internally
        self.additional_authorized_imports: list[str] = require_list(
            "additional_authorized_imports", additional_authorized_imports
        )
        super().__init__(
            tools,
            model,
            prompt_templates,
            planning_interval=planning_interval,
            stream_outputs=stream_outputs,
            **kwargs,
        )
        if use_e2b_executor:
            executor_type = _type_instead_of_flag(executor_type)
        if executor is not None and (executor_type not in (None, "local") or executor_kwargs):
            raise ValueError("executor= says all: leave out executor_type and executor_kwargs")
        self.executor_type = executor_type or _DEFAULT_TYPE
        self.executor_kwargs = dict(executor_kwargs or {})
        self.max_print_outputs_length = max_print_outputs_length
        if keep_files is not None:
            from sanderling.runtime import keep_folder

            self.keep_files = str(keep_folder(keep_files))
        self.executor = executor
        if self.approve is not None and executor is not None:
            from sanderling.sandbox import InterpreterExecutor

            if not isinstance(executor, InterpreterExecutor):
                raise ValueError(
                    f"approve= cannot hold for the tools that a {type(executor).__name__} calls "
                    "by itself: use one of Sanderling's executors, or executor_type="
                )
        self._tags = self._chosen_tags(code_block_tags)
        if executor is None and not self._makes_own_executor:
            self.create_python_executor().cleanup()  # starts nothing: tells now what cannot work

    @property
    def code_block_tags(self) -> tuple[str, str]:
        """The marks around code."""
        return self._tags.opening, self._tags.closing

    @property
    def authorized_imports(self) -> list[str]:
        """All modules that the code may import."""
        return sorted({*BASE_BUILTIN_MODULES, *self.additional_authorized_imports})

    def initialize_system_prompt(self) -> str:
        """Renders the system prompt."""
        return render(self.prompt_templates["system_prompt"], **self._prompt_variables())

    def _prompt_variables(self) -> dict[str, Any]:
        imports = self.authorized_imports
        return {
            **super()._prompt_variables(),
            "authorized_imports": "any package" if "*" in imports else ", ".join(imports),
            "code_block_opening_tag": self._tags.opening,
            "code_block_closing_tag": self._tags.closing,
            "has_parallel": self._has_parallel,
            "is_shut_off": self._is_shut_off,
        }

    @property
    def _makes_own_executor(self) -> bool:
        return defines(self, "create_python_executor", CodeAgent)

    @property
    def _has_parallel(self) -> bool:
        """Whether code surely has the function `parallel`; executors of others need not have it."""
        if self.executor is None:
            return not self._makes_own_executor
        from sanderling.sandbox import InterpreterExecutor

        return isinstance(self.executor, InterpreterExecutor)

    @property
    def _is_shut_off(self) -> bool:
        """Whether code surely reaches nothing but its work folder and the tools."""
        if self.executor is None:
            return not self._makes_own_executor and self.executor_type in _SHUT_OFF
        from sanderling.sandbox import DockerExecutor, LocalPythonExecutor, WasmExecutor

        return isinstance(self.executor, LocalPythonExecutor | DockerExecutor | WasmExecutor)

    def _must_be_said(self) -> list[tuple[str, object]]:
        return [
            *super()._must_be_said(),
            ("authorized_imports", self.additional_authorized_imports),
        ]

    def _action(self) -> Action:
        structured = self.use_structured_outputs_internally
        action = CodeAction(
            self._tags,
            stream=self.stream_outputs,
            structured=structured,
            max_logs=self._max_logs,
        )
        options: dict[str, Any] = {} if self.grammar is None else {"grammar": self.grammar}
        if (profile := self._profile) is None:
            return replace(action, options=options)
        if profile.grammar is not None and not structured:
            grammar = render(profile.grammar, **self._prompt_variables())
            options.setdefault("grammar", grammar)
        options = {**profile.options, **options}
        return replace(action, stop_sequences=profile.stop_sequences, options=options)

    @property
    def _max_logs(self) -> int | None:
        if self._has_parallel:  # it is our own sandbox, which has cut what was printed
            return None
        return self.max_print_outputs_length or MAX_LOGS

    @property
    def python_executor(self) -> PythonExecutor:
        """What runs the code of the conversation: with its variables, and with the tools."""
        return cast("PythonExecutor", self._current.sandbox().executor)

    def create_python_executor(self) -> PythonExecutor:
        """Makes what runs the code of one conversation. Subclasses may make something else."""
        from sanderling.sandbox import create_executor  # it brings asyncio, slow to import

        return create_executor(
            self.executor_type,
            self.additional_authorized_imports,
            **{"max_print_outputs_length": self.max_print_outputs_length, **self.executor_kwargs},
        )

    def cleanup(self) -> None:
        """Ends the sandbox of the conversation, and the executor that the agent was given."""
        super().cleanup()
        cleanup = getattr(self.executor, "cleanup", None)
        if cleanup is not None:
            cleanup()

    def check_inputs(
        self, images: Sequence[ImageSource] | None, variables: Mapping[str, Any] | None
    ) -> list[ImageSource]:
        """Checks what comes with a task; returns the images. See `Definition`."""
        check_variables(variables, {*self.tools, *self._agent_tools})
        return super().check_inputs(images, variables)

    def check_place(self, session: Session) -> None:
        """Looks for what a run will need, and has it start. See `Definition`."""
        if self.executor is not None or session.open_interpreter is not None:
            return
        from sanderling.sandbox import InterpreterExecutor

        executor = session.sandbox().executor
        if isinstance(executor, InterpreterExecutor):
            executor.check()
            executor.start_soon()

    def create_sandbox(self, memory: AgentMemory) -> Sandbox:
        """Makes the place where the code of a session runs, with the tools. See `Definition`."""
        from sanderling.sandbox import interpreter_of

        executor = self.executor or self.create_python_executor()
        specs = [
            *(ToolSpec.of(t.name, t.signature, t.description) for t in self.tools.values()),
            *(
                ToolSpec.of(tool.name, tool.code_signature, tool.description)
                for tool in self._agent_tools.values()
            ),
        ]
        callables = {**with_memory(self.tools, memory), **self._agent_tools}
        interpreter = interpreter_of(executor, specs, callables)
        return Sandbox(executor, interpreter, is_shared=self.executor is not None)

    def _printer(self) -> RunPrinter:
        return RunPrinter(self.logger, code_marks=[self._tags.opening])

    def _chosen_tags(self, given: Literal["markdown"] | tuple[str, str] | None) -> CodeTags:
        if given == "markdown":
            return CodeTags("```python", "```")
        if given is None:
            given = self._profile.code_block_tags if self._profile is not None else None
        return CodeTags() if given is None else _pair_of_tags(given)


_SHUT_OFF = ("auto", "docker", "local", "wasm")


def _pair_of_tags(given: object) -> CodeTags:
    match given:
        case (str(opening), str(closing)):
            return CodeTags(opening, closing)
    raise ValueError(f'code_block_tags is "markdown" or (opening, closing), not {given!r}')


def _type_instead_of_flag(executor_type: str | None) -> str:
    if executor_type not in (None, "local", "e2b"):
        raise ValueError(f"use_e2b_executor=True contradicts executor_type={executor_type!r}")
    warnings.warn(
        'use_e2b_executor=True is now written executor_type="e2b"', DeprecationWarning, stacklevel=3
    )
    return "e2b"
