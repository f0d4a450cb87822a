"""What all agents share: the doors through which a definition is run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Never, Self, Unpack, overload

from sanderling.memory import ActionStep, AgentMemory
from sanderling.runtime import ManualControl, Run, Session

from ._agent_tool import format_answer, format_task
from ._definition import AgentDefinition
from ._old_names import OldNames
from ._own_session import OwnSession
from ._validation import defines, refuse_unknown

if TYPE_CHECKING:
    from sanderling.loop import Event
    from sanderling.messages import ImageSource
    from sanderling.runtime import FilePath, RunLimits, RunOptions


class MultiStepAgent(AgentDefinition, OldNames):
    """Solves tasks in steps: asks a model, does what it says, shows it what came of that.

    The agent is a definition. What a run changes (memory, variables, sandbox) belongs to the run
    and its session: one agent may run many tasks at once. `memory` and `state` are those of the
    run that began last, not counting runs in a session of their own and those of managed agents.
    In a method or a callback that a run calls, they are those of that run.

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

    __slots__ = ("_given_control",)  # set in the handles that `within` makes
    _given_control: ManualControl | None

    _own: OwnSession | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy has a session of its own: a sandbox and a run under way belong to one agent.
        state = {**vars(self), "_own": None}
        state.pop("_answer_type", None)  # made of `output_type` again
        return state

    def start(
        self,
        task: str,
        *,
        session: Session | None = None,
        reset: bool = True,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Returns a run of a task. Nothing has happened until it is driven; see `Run`.

        Args:
            task: What is to be done.
            session: Where it works; see `session`.
            reset: Without a session: whether it works in a new one, rather than in that of the
                last run of this agent.
            **options: ``images``: shown to the model with the task: PIL images, bytes, paths, URLs.
                ``variables``: values by name, told to the model and usable in its code.
                ``max_steps`` and ``limits``: in the place of those of the agent. ``files`` and
                ``keep_files``: see `run`.

        Raises:
            TypeError: The task is no text, or an option not what it has to be.
            ValueError: The task is empty, or `max_steps` less than 1.
            AgentError: The session belongs to a run that has not ended.
        """
        if not isinstance(task, str):
            raise TypeError(f"a task is a text, not {type(task).__name__}")
        if not task.strip():
            raise ValueError("the task is empty: say what the agent is to do")
        options["keep_files"] = options.get("keep_files") or self.keep_files
        agent = self._unbound
        if session is not None:
            session.check_free()
            return Run(agent, session, task, on_begin=session.renew_memory, **options)
        session, was_used = self._own_session.for_run(reset)
        on_begin = partial(self._own_session.go_on_in, session, reset)
        try:
            return Run(agent, session, task, on_begin=on_begin, **options)
        except BaseException:
            session.is_used = was_used
            raise

    def session(self) -> Session:
        """Returns a new conversation, with a memory, variables and a sandbox of its own.

        `memory`, `interrupt` and ``reset=False`` of the agent know nothing of it. It begins with
        the variables that you have set in `state`.
        """
        return self._own_session.new()

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
                This and all errors below have the run as ``run``.
            AgentGenerationError: The model could not be asked.
            AgentInterruptedError: `interrupt` was called.
            AgentLimitError: A limit was reached.
            SandboxUnavailable: This machine cannot enforce the walls around code.
            SandboxError: Files cannot go in and out of the place where code runs.
        """
        self._refuse_unknown("run", unknown)
        if isinstance(images, bool):
            single_step, images = images, None
        options = _options(images, additional_args, max_steps, limits, files, keep_files)
        if single_step:
            _check_alone(stream, return_full_result, limits, keep_files)
            memory = self._take_task(task, reset, options)
            memory_step = ActionStep(step_number=1)
            answer = self.step(memory_step)
            memory.steps.append(memory_step)
            return answer
        run = self.start(task, reset=reset, **options)
        if stream:
            return run.events()
        if self._wants_all(return_full_result):
            return run.result()
        return run.answer()

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
        options = _options(images, additional_args, max_steps, limits, files, keep_files)
        if single_step:
            _check_alone(return_full_result, limits, keep_files)
            memory = self._take_task(task, reset, options)
            memory_step = ActionStep(step_number=1)
            answer = await self._own_astep(memory_step)
            memory.steps.append(memory_step)
            return answer
        run = self.start(task, reset=reset, **options)
        if self._wants_all(return_full_result):
            return await run.aresult()
        return await run.aanswer()

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
        options = _options(images, additional_args, max_steps, limits, files, keep_files)
        return self.start(task, reset=reset, **options).aevents()

    def __call__(self, task: str | None = None, **kwargs: Any) -> Any:
        """Runs a task as a managed agent does, and returns its report.

        Args:
            task: What is to be done; may be given as ``request=``.
            **kwargs: Further arguments of `run`.
        """
        request = kwargs.pop("request", None)
        if (task := task if task is not None else request) is None:
            raise TypeError("an agent is called with a task")
        result = self.run(format_task(self, task), **{**kwargs, "return_full_result": True})
        return format_answer(self, result.output, result.run.memory)

    @property
    def current_run(self) -> Run | None:
        """The run under way: in a method or callback that a run calls, that run."""
        if self._control is not None:
            return self._control.run
        session = None if self._own is None else self._own.session
        return None if session is None else session.run_in_progress

    def interrupt(self) -> None:
        """Ends `current_run`, from any thread; see `Run.interrupt`."""
        if (run := self.current_run) is not None:
            run.interrupt()

    @property
    def memory(self) -> AgentMemory:
        """The memory of the session: readable before the first run.

        Another one can be assigned, such as one that was saved, for a run with ``reset=False`` to
        go on from. Variables and the sandbox stay.

        Raises:
            TypeError: What is assigned is no `AgentMemory`.
            AgentError: A run is under way.
        """
        return self._current.memory

    @memory.setter
    def memory(self, memory: AgentMemory) -> None:
        value: object = memory
        if not isinstance(value, AgentMemory):
            raise TypeError(f"the memory must be an AgentMemory, not a {type(value).__name__}")
        self._current.check_free()
        self._current.memory = memory

    @property
    def state(self) -> dict[str, Any]:
        """The variables of the session: those that came with its tasks, and your own.

        What you set here, before a run or between two, is there in every run from then on. Another
        dict can be assigned. Code keeps the variables that it was given before.

        Raises:
            TypeError: What is assigned is no dict.
            AgentError: A run is under way.
        """
        return self._current.variables

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        value: object = state
        if not isinstance(value, dict):
            raise TypeError(f"the state is a dict of values by name, not a {type(value).__name__}")
        self._current.check_free()
        self._current.variables = state

    def replay(self, detailed: bool = False) -> None:
        """Prints what happened, step by step; `detailed` also what the model was sent in each."""
        self.memory.replay(self.logger, detailed)

    def cleanup(self) -> None:
        """Closes the sandbox of the session; a later run starts a new one."""
        if self._own is not None and self._own.session is not None:
            self._own.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.cleanup()

    def step(self, memory_step: ActionStep) -> Any:
        """Takes one step, and writes what came of it into `memory_step`.

        A run needs not have been started before. The step is not put into memory: append it, for
        the model to know of it. A mistake of the model is kept as ``memory_step.error``.

        A class of your own may define this method anew, and call this one or not: the runs of its
        agents take each step with it, in a worker thread under asyncio. They append the step, put
        an answer before the checks, and keep an `AgentError` that is raised on the step. What the
        method does without this class, such as asking ``self.model``, no policy and no limit sees.
        ``self.memory`` and ``self.state`` are those of the run, which is `current_run`.

        Args:
            memory_step: A new one, such as ``ActionStep(step_number=1)``.

        Returns:
            The answer, or `None` as long as there is none. (Where the answer itself is `None`,
            ``memory_step.is_final_answer`` tells.)

        Raises:
            AgentGenerationError: The model could not be asked.
            AgentLimitError: A limit was reached.
        """
        return self._manual().step(memory_step)

    async def astep(self, memory_step: ActionStep) -> Any:
        """Does what `step` does, under asyncio."""
        return await self._manual().astep(memory_step)

    # What runs ask of it: see `sanderling.runtime.Definition`

    def within(self, control: ManualControl | None) -> Self:
        """Returns the agent as a run hands it to its methods and callbacks.

        This is a second handle on the same agent, with the very same attributes, not a copy of
        them. Through it `memory`, `state`, `step` and their like are those of the run, so that runs
        of one agent can go on at the same time.

        Args:
            control: Does things by hand in the run; None for a handle outside of any run.
        """
        agent = object.__new__(type(self))
        agent.__dict__ = self.__dict__
        agent._given_control = control
        return agent

    @property
    def _control(self) -> ManualControl | None:
        """What does things by hand in the run that this handle belongs to, if it does."""
        return getattr(self, "_given_control", None)

    @property
    def _unbound(self) -> Self:
        return self if self._control is None else self.within(None)

    def _has_own(self, method: str) -> bool:
        return defines(self, method, MultiStepAgent)

    def _manual(self) -> ManualControl:
        """Returns what does things by hand in the session."""
        if self._control is not None:
            return self._control
        session = self._current
        session.check_free()
        session.is_used = True
        return Run(self, session, self.task or "", limiter=session.limiter(self.limits)).manual()

    def _refuse_unknown(self, method: str, unknown: Mapping[str, object]) -> None:
        if unknown:
            functions = [getattr(MultiStepAgent, method)]
            refuse_unknown(f"{type(self).__name__}.{method}", functions, unknown)

    @property
    def _current(self) -> Session:
        if self._control is not None:
            return self._control.run.session
        return self._own_session.current()

    @property
    def _own_session(self) -> OwnSession:
        if self._own is None:
            self._own = OwnSession(self._unbound)
        return self._own

    def _take_task(self, task: str, reset: bool, options: RunOptions) -> AgentMemory:
        """Puts a task into memory as a run does that begins with it."""
        with self.start(task, reset=reset, **options) as run:
            run.take_task()
            run.bring_files()
            return run.memory

    async def _own_astep(self, memory_step: ActionStep) -> Any:
        if not self._has_own("step"):
            return await self.astep(memory_step)
        from sanderling._bridge import in_thread

        answer = await in_thread(partial(self.step, memory_step))
        return await answer if hasattr(type(answer), "__await__") else answer

    def _wants_all(self, return_full_result: bool | None) -> bool:
        return self.return_full_result if return_full_result is None else return_full_result


def _options(
    images: Sequence[ImageSource] | None,
    additional_args: Mapping[str, Any] | None,
    max_steps: int | None,
    limits: RunLimits | None,
    files: Sequence[FilePath] | None,
    keep_files: FilePath | None,
) -> RunOptions:
    return {
        "images": images,
        "variables": additional_args,
        "max_steps": max_steps,
        "limits": limits,
        "files": files,
        "keep_files": keep_files,
    }


def _check_alone(*others: object) -> None:
    if any(others):
        raise ValueError(
            "single_step gives the answer or None: no stream, no full result, no limits, no "
            "keep_files"
        )
