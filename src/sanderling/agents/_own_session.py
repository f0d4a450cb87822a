"""The session of an agent whose runs are given none."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sanderling.runtime import Session

if TYPE_CHECKING:
    from sanderling.runtime import Definition

_choosing = threading.Lock()  # of the session of a run: no two runs take over the same


class OwnSession:
    """Keeps the session of the run that began last, and prepares that of the next one.

    Args:
        agent: Whose runs these are.
    """

    def __init__(self, agent: Definition) -> None:
        self._agent = agent
        self._prepared: Mapping[str, Any] = {}  # variables for all runs; only replaced
        self.session: Session | None = None

    def current(self) -> Session:
        """Returns the session, made if there is none."""
        if self.session is None:
            self.session = self.new()
        return self.session

    def new(self) -> Session:
        """Returns a new session, with the variables that the user has set for all runs."""
        self._note_preparation()
        return Session(self._agent, self._prepared)

    def for_run(self, reset: bool) -> tuple[Session, bool]:
        """Returns the session of the last run, one that was prepared for this run, or a new one.

        Returns:
            The session, and whether another run has used it.

        Raises:
            AgentError: The last run has not ended.
        """
        with _choosing:
            session = self.session
            if session is None or (reset and session.is_used):
                return self.new(), False
            session.check_free()
            self._note_preparation()
            was_used, session.is_used = session.is_used, True
            return session, was_used

    def go_on_in(self, session: Session, reset: bool) -> None:
        """Has a run begin in a session; the one before ends with its run."""
        with _choosing:
            previous, self.session = self.session, session
        if previous is not None and previous is not session:
            previous.abandon()
        session.renew_memory(reset=reset)

    def _note_preparation(self) -> None:
        if self.session is not None and self.session.run_in_progress is None:
            self._prepared = self.session.prepared(self._prepared)
