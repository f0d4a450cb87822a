"""What an agent has from its runs: the conversation that the run started last belongs to."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from sanderling.memory import AgentMemory, SystemPromptStep

from ._conversation import Conversation
from ._definition import Definition

if TYPE_CHECKING:
    from types import TracebackType


_choosing = threading.Lock()  # of the conversation of a run: no two runs take over the same


class WithConversation(Definition):
    """A definition that can be talked with: it has the memory and the sandbox of its last run."""

    _conversation: Conversation | None = None
    _prepared: Mapping[str, Any] = {}  # variables for all runs; never changed, but replaced

    def __getstate__(self) -> dict[str, Any]:
        # A copy has a conversation of its own: a sandbox and a run under way belong to one agent.
        state = {**vars(self), "_conversation": None}
        state.pop("_answer_type", None)  # made of `output_type` again
        return state

    @property
    def memory(self) -> AgentMemory:
        """The memory of the conversation: readable before the first run.

        Another one can be assigned, such as one that was saved, for a run with ``reset=False`` to
        go on from. Variables and the sandbox stay.

        Raises:
            TypeError: What is assigned is no `AgentMemory`.
            AgentError: A run is under way.
        """
        return self._current.memory

    @memory.setter
    def memory(self, memory: AgentMemory) -> None:
        given: object = memory
        if not isinstance(given, AgentMemory):
            raise TypeError(f"the memory must be an AgentMemory, not a {type(given).__name__}")
        self._current.check_free()
        self._current.memory = memory

    @property
    def state(self) -> dict[str, Any]:
        """The variables of the conversation: those that came with its tasks, and your own.

        What you set here, before a run or between two, is there in every run from then on. Another
        dict can be assigned. Code keeps the variables that it was given before.

        Raises:
            TypeError: What is assigned is no dict.
            AgentError: A run is under way.
        """
        return self._current.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        given: object = state
        if not isinstance(given, dict):
            raise TypeError(f"the state is a dict of values by name, not a {type(given).__name__}")
        self._current.check_free()
        self._current.state = state

    def replay(self, detailed: bool = False) -> None:
        """Prints what happened so far, step by step.

        Args:
            detailed: Also print what the model was sent in each step.
        """
        self.memory.replay(self.logger, detailed)

    def cleanup(self) -> None:
        """Ends the sandbox of the conversation; a later run starts a new one."""
        if self._conversation is not None:
            self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cleanup()

    @property
    def _current(self) -> Conversation:
        if self._conversation is None:
            self._conversation = self._new_conversation()
        return self._conversation

    def _note_preparation(self) -> None:
        current = self._conversation
        if current is not None and not current.busy:
            self._prepared = current.prepared(self._prepared)

    def _new_conversation(self) -> Conversation:
        self._note_preparation()
        return Conversation(AgentMemory(self.system_prompt), dict(self._prepared))

    def _conversation_for(self, task: str, reset: bool) -> Conversation:
        if not isinstance(task, str):
            raise TypeError(f"a task is a text, not {type(task).__name__}")
        if not task.strip():
            raise ValueError("the task is empty: say what the agent is to do")
        prompt = self.system_prompt
        with _choosing:
            previous = self._conversation
            self._note_preparation()
            if previous is None or (reset and (previous.used or previous.busy)):
                self._conversation = self._new_conversation()
            current = self._current
            current.check_free()
            current.used = True
        if current is not previous and previous is not None and not previous.busy:
            previous.close()
        if reset and current.memory.steps:
            current.memory = AgentMemory(prompt)
        elif current.memory.system_prompt.system_prompt != prompt:
            current.memory.system_prompt = SystemPromptStep(prompt)
        return current

    def _release(self, conversation: Conversation) -> None:
        """Keeps the sandbox of the conversation that the next run may go on with, and no other."""
        conversation.leave()
        if conversation is not self._conversation:
            conversation.close()
