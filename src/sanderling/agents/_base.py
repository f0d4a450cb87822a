"""What all agents share: a definition that runs tasks, one after the other or many at once."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, cast, overload

from sanderling._warn import capture_warnings
from sanderling.console import LogLevel
from sanderling.errors import AgentInterruptedError
from sanderling.loop import Run, RunStarted
from sanderling.memory import ActionStep, AgentMemory
from sanderling.runtime import Control, Meter, Services

from ._by_hand import ByHand, Workbench
from ._course import Course
from ._given import images_there
from ._governance import as_limits, with_memory
from ._managed import briefing, report
from ._old_names import OldNames
from ._parts import at_least_one, is_overridden, refuse_unknown
from ._with_conversation import WithConversation

if TYPE_CHECKING:
    from sanderling.loop import Event
    from sanderling.messages import ImageSource
    from sanderling.runtime import RunLimits
    from sanderling.sandbox import Interpreter

    from ._conversation import Conversation
    from ._files import FilePath, RunFiles


class MultiStepAgent(WithConversation, ByHand, OldNames):
    """Solves tasks in steps: asks a model, does what it says, shows it what came of that.

    The agent is a definition. What a run changes (memory, variables, sandbox) belongs to the run:
    one agent may run many tasks at once. `memory` and `state` are those of the run started last.

    Args:
        tools: `Tool`s, or annotated functions with a docstring.
        model: A `Model`, or any callable from messages to a `ChatMessage`.
        prompt_templates: Replaces the agent's own prompts; see `PromptTemplates`.
        instructions: Added to the system prompt.
        max_steps: How many steps a run may take before it has to answer.
        add_base_tools: Adds ready tools: for a `ToolCallingAgent` one that runs Python.
        verbosity_level: How much is printed; see `LogLevel`.
        managed_agents: Agents that this one may call; each has a `name` and a `description`.
        step_callbacks: Called with each finished step; a list, or by class of step.
        planning_interval: After how many steps the model makes a new plan; none are made without.
        name: Names the agent; an identifier.
        description: Says what it is good for.
        provide_run_summary: Whether a manager gets what was done on the way with the answer.
        final_answer_checks: Called with ``(answer, memory, agent=agent)``; what is false or raises
            sends the answer back to the model.
        return_full_result: Makes `run` return a `RunResult` instead of the bare answer.
        logger: Prints; made from `verbosity_level` where it is not given.
        stream_outputs: Whether the model's text comes out while it is written.
        system_prompt: The template of the system prompt by itself, the other prompts staying as
            they are. It may have the old tags, such as ``{{tool_descriptions}}``.
        tool_description_template: How a tool is described to the model, which it knows as ``tool``.
        tool_parser: Reads the tool call in a reply without native ones: from its text to ``(name,
            arguments)``, to a call, or to a list of them. A `CodeAgent`, whose model writes code,
            has no use for it.
        grammar: What replies must look like, passed on to the model with every action.
        output_type: What the answer has to be: a pydantic model, a dataclass, a typed dict, a plain
            type such as ``list[int]``, or a JSON schema. An answer that does not fit goes back to
            the model with the reason.
        on_generation_error: Whether a run ends where the model cannot be asked (``"raise"``), or
            the error is kept on the step and the next one tries again (``"record"``).
        limits: How much a run may use, those of managed agents included. By hand, all that is done
            until the next `run` counts as one, but for the seconds, which each step has anew.
        approve: Asked before each piece of code and each call of a tool, those of managed agents
            included: takes an `ApprovalRequest`, returns `Allow`, `Deny` or `Edit`; may be async.
        policies: Further policies around all that a run does; see `sanderling.runtime.Policy`.
        history_processors: What is done to the messages before each model call, such as
            `Compaction`: functions from messages to messages, which may be async.

    Raises:
        TypeError: The model, a tool or a managed agent is none, the output type cannot be
            described, or there is no argument of such a name.
        ValueError: Two tools or agents have one name, a name is no identifier, a managed agent has
            no name or description, or two arguments contradict each other.
    """

    keep_files: FilePath | None = None
    _calls_tools = False  # in its steps, that is, other than from code

    def _interpreter(self, conversation: Conversation) -> Interpreter:
        """Returns the sandbox of a conversation, opened if need be."""
        raise TypeError(
            f"{type(self).__name__} runs no code, and has no work folder for files= and keep_files="
        )

    @overload
    def run(
        self,
        task: str,
        stream: Literal[True],
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
        *,
        limits: RunLimits | None = None,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
    ) -> Generator[Event, None, None]: ...
    @overload
    def run(
        self,
        task: str,
        stream: Literal[False] = False,
        reset: bool = True,
        images: Sequence[ImageSource] | bool | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
        single_step: bool = False,
        limits: RunLimits | None = None,
        *,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
    ) -> Any: ...
    def run(
        self,
        task: str,
        stream: bool = False,
        reset: bool = True,
        images: Sequence[ImageSource] | bool | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
        single_step: bool = False,
        limits: RunLimits | None = None,
        *,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
        **unknown: Never,
    ) -> Any:
        """Runs a task in the calling thread.

        Args:
            task: What is to be done.
            stream: Return a generator of events instead, the last one a `FinalAnswerStep`.
            reset: Start from an empty memory and a fresh sandbox; otherwise go on where the last
                run of this agent ended.
            images: Shown to the model with the task: PIL images, bytes, paths, URLs. (A bool in
                this place is taken for `single_step`, which stood here in smolagents 1.4.)
            additional_args: Variables by name, told to the model and usable in its code.
            max_steps: Overrides that of the agent, unless it is 0.
            return_full_result: Overrides that of the agent.
            single_step: Take one step only, and return the answer or `None`. It goes with no other
                result and no limits.
            limits: Overrides those of the agent.
            files: Files and folders that are copied into the work folder, where code opens them by
                their own names; the model is told. For agents that act by code, on this machine.
            keep_files: A folder that gets, when the run ends, copies of the files that its code has
                written, in the place of those of the same name. Overrides that of the agent.
            **unknown: Refused, with the close name that there is.

        Returns:
            The answer; a `RunResult` or a generator of events where one was asked for.

        Raises:
            TypeError: The task is no text, or another argument not what it has to be.
            ValueError: The task is empty, two arguments contradict each other, or a name in
                `additional_args` cannot be that of a variable.
            FileNotFoundError: An image is not there.
            OSError: A file is not there or cannot be read, or the folder cannot be made.
            AgentError: With ``reset=False``, the run that this one shall go on from has not ended.
            AgentGenerationError: The model could not be asked.
            AgentInterruptedError: `interrupt` was called.
            AgentLimitError: A limit was reached.
            SandboxUnavailable: This machine cannot enforce the walls around code.
            SandboxError: Files cannot go in and out of the place where code runs.
        """
        self._refuse_unknown("run", unknown)
        if isinstance(images, bool):
            single_step, images = images, None
        if single_step:
            _check_alone(stream, return_full_result, limits, keep_files)
            memory, memory_step = self._one_step(task, reset, images, additional_args, files)
            answer = self.step(memory_step)
            memory.steps.append(memory_step)
            return answer
        course = self._begin(
            task, reset, images, additional_args, max_steps, limits, files, keep_files
        )
        if stream:
            return course.events()
        for _ in course.events():
            pass
        return self._returned(course, return_full_result)

    async def arun(
        self,
        task: str,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        return_full_result: bool | None = None,
        single_step: bool = False,
        limits: RunLimits | None = None,
        *,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
        **unknown: Never,
    ) -> Any:
        """Runs a task under asyncio; takes, returns and raises what `run` does."""
        self._refuse_unknown("arun", unknown)
        if single_step:
            _check_alone(return_full_result, limits, keep_files)
            memory, memory_step = self._one_step(task, reset, images, additional_args, files)
            if is_overridden(self, "step", ByHand):
                from ._overrides import beside_the_loop

                answer = await beside_the_loop(lambda: self.step(memory_step))
            else:
                answer = await self.astep(memory_step)
            memory.steps.append(memory_step)
            return answer
        course = self._begin(
            task, reset, images, additional_args, max_steps, limits, files, keep_files
        )
        await course.arun()
        return self._returned(course, return_full_result)

    def astream(
        self,
        task: str,
        reset: bool = True,
        images: Sequence[ImageSource] | None = None,
        additional_args: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        limits: RunLimits | None = None,
        *,
        files: Sequence[FilePath] | None = None,
        keep_files: FilePath | None = None,
        **unknown: Never,
    ) -> AsyncGenerator[Event, None]:
        """Runs a task under asyncio and yields its events, the last one a `FinalAnswerStep`."""
        self._refuse_unknown("astream", unknown)
        return self._begin(
            task, reset, images, additional_args, max_steps, limits, files, keep_files
        ).aevents()

    def __call__(self, task: str | None = None, **kwargs: Any) -> Any:
        """Runs a task as a managed agent does, and returns its report.

        Args:
            task: What is to be done; may be given as ``request=``.
            **kwargs: Further arguments of `run`.

        Raises:
            TypeError: There is no task.
        """
        request = kwargs.pop("request", None)
        if (task := task if task is not None else request) is None:
            raise TypeError("an agent is called with a task")
        result = self.run(briefing(self, task), **{**kwargs, "return_full_result": True})
        return report(self, result.output, self.memory)

    def interrupt(self) -> None:
        """Ends the run that was started last, from any thread.

        The model call, tool or code in progress is broken off. The run raises
        `AgentInterruptedError`; what was done until then stays in memory. Runs that this agent was
        given by a manager end with the manager's.
        """
        conversation = self._conversation
        if conversation is not None and conversation.control is not None:
            conversation.control.stop(AgentInterruptedError("The run was interrupted."))

    def _refuse_unknown(self, method: str, unknown: Mapping[str, object]) -> None:
        if unknown:
            functions = [getattr(MultiStepAgent, method)]
            refuse_unknown(f"{type(self).__name__}.{method}", functions, unknown)

    def _one_step(
        self,
        task: str,
        reset: bool,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        files: Sequence[FilePath] | None,
    ) -> tuple[AgentMemory, ActionStep]:
        """Prepares a single step, and returns it with the memory that it belongs to."""
        images = self._given(images, additional_args)
        conversation = self._conversation_for(task, reset)
        run_files = self._files(conversation, files)
        with capture_warnings(self._warned):
            conversation.begin(task, images, additional_args, run_files.described)
        run_files.bring()
        return conversation.memory, ActionStep(step_number=1)

    def _begin(
        self,
        task: str,
        reset: bool,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        max_steps: int | None,
        limits: RunLimits | None,
        files: Sequence[FilePath] | None,
        keep_files: FilePath | None,
    ) -> Course:
        images = self._given(images, additional_args)
        conversation = self._conversation_for(task, reset)
        run_files = self._files(conversation, files, keep_files or self.keep_files)
        return self._course(
            conversation, task, images, additional_args, max_steps, limits, run_files
        )

    def _given(
        self,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
    ) -> list[ImageSource]:
        """Checks what comes with a task; returns the images."""
        return images_there(images)

    def _files(
        self,
        conversation: Conversation,
        files: Sequence[FilePath] | None = None,
        keep: FilePath | None = None,
    ) -> RunFiles:
        from ._files import RunFiles  # only runs need it

        def tell(line: str) -> None:
            self.logger.log(line, style="dim")

        return RunFiles(
            conversation, tell, files, keep, lambda: self._interpreter(conversation).work_files
        )

    def _errand(
        self,
        task: str,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        caller: Services,
    ) -> Course:
        """Prepares a run for another agent, in a conversation of its own."""
        images = self._given(images, additional_args)
        conversation = self._new_conversation()
        files = self._files(conversation, keep=self.keep_files)
        return self._course(conversation, task, images, additional_args, None, None, files, caller)

    def _course(
        self,
        conversation: Conversation,
        task: str,
        images: Sequence[ImageSource] | None,
        additional_args: Mapping[str, Any] | None,
        max_steps: int | None,
        limits: RunLimits | None,
        files: RunFiles,
        caller: Services | None = None,
    ) -> Course:
        self._check_place(conversation)
        limits = as_limits(limits or self.limits)
        max_steps = at_least_one("max_steps", max_steps or None)
        with capture_warnings(self._warned):
            task = conversation.begin(task, images, additional_args, files.described)
        meter = None if limits is None else Meter(limits)
        conversation.meter = None
        services = self._services(conversation, task, max_steps, meter, caller)
        conversation.control = services.control
        model_id = getattr(self.model, "model_id", None)
        started = RunStarted(
            task=task,
            agent=self.name,
            model=" - ".join(filter(None, (type(self.model).__name__, model_id))),
            images=tuple(images or ()),
        )
        if is_overridden(self, "step", ByHand):
            from ._overrides import by_step

            bound = cast("Callable[[], MultiStepAgent]", services.agent)
            action = by_step(bound, conversation, services)
        else:
            action = self._action()
        return Course(
            conversation,
            services,
            action,
            self._forced_answer,
            started,
            files,
            self._printer() if self.logger.level > LogLevel.OFF else None,
            self._release,
            self.max_tool_threads,
            None if self.planning_interval is None else self._planning(self.planning_interval),
            None if limits is None else limits.seconds,
        )

    def _check_place(self, conversation: Conversation) -> None:
        """Looks for what the run will need, before anybody is paid for it."""

    def _services(
        self,
        conversation: Conversation,
        task: str,
        max_steps: int | None = None,
        meter: Meter | None = None,
        caller: Services | None = None,
    ) -> Services:
        agent = self._bound_to(conversation)
        services = Services(
            run=Run(
                task,
                conversation.memory,
                max_steps or self.max_steps,
                conversation.state,
                self._answer_type,
                self.on_generation_error,
            ),
            model=self.model,
            tools={**with_memory(self.tools, conversation.memory), **self._delegates},
            interpreter=lambda: self._interpreter(conversation),
            callbacks=self.step_callbacks,
            checks=self.final_answer_checks,
            agent=agent,
            path="/".join(filter(None, (caller.path if caller else "", self.name))),
            policies=(
                *(caller.policies if caller else ()),
                *self._governance.for_tree(meter),
            ),
            own_policies=self._governance.for_run(conversation.memory),
            control=Control(caller.control if caller else None),
            warned=self._warned,
        )
        if self._calls_tools and is_overridden(self, "execute_tool_call", ByHand):
            from ._overrides import by_execute_tool_call

            return by_execute_tool_call(services, agent, conversation)
        return services

    def _workbench(self) -> Workbench:
        from ._overrides import lent_in  # hardly anybody needs it

        conversation = self._current
        lent = lent_in(conversation)
        if lent is not None:
            services = lent.services
        else:
            conversation.check_free()
            conversation.used = True
            meter = conversation.metered(self.limits)
            services = self._services(conversation, self.task or "", meter=meter)
            conversation.control = services.control
        printer = self._printer() if self.logger.level > LogLevel.OFF else None
        if printer is not None:
            printer.count(conversation.memory.steps)
        return Workbench(
            conversation,
            services,
            self._action(),
            self._forced_answer,
            self._planning(self.planning_interval or 1),
            printer,
            None if self.limits is None else self.limits.seconds,
            lent,
        )

    def _bound_to(self, conversation: Conversation) -> Callable[[], MultiStepAgent]:
        """Makes the agent that callbacks get to see: its memory is that of their own run."""
        bound: MultiStepAgent | None = None

        def agent() -> MultiStepAgent:
            nonlocal bound
            if self._conversation is conversation:
                return self
            if bound is None:
                bound = copy.copy(self)
                bound._conversation = conversation
            return bound

        return agent

    def _warned(self, warning: str) -> None:
        self.logger.log(warning, style="yellow")

    def _returned(self, course: Course, return_full_result: bool | None) -> Any:
        full = self.return_full_result if return_full_result is None else return_full_result
        return course.result if full else course.output


def _check_alone(*others: object) -> None:
    if any(others):
        raise ValueError(
            "single_step gives the answer or None: no stream, no full result, no limits, no "
            "keep_files"
        )
