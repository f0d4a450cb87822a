"""Drives one loop, a while under one driver and a while under another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any

from sanderling.loop import RunStarted, react
from sanderling.memory import ActionStep, PlanningStep

from ._drivers import Done, adrive, drive
from ._own_methods import own_step

if TYPE_CHECKING:
    import asyncio

    from sanderling.loop import Event
    from sanderling.messages import ImageSource

    from ._context import RunContext
    from ._sync import EffectHandler

_BETWEEN_STEPS = (RunStarted, ActionStep, PlanningStep)


class Turns:
    """The loop of a run, with the driver that has it just now.

    The driver can change between two steps, where no effect is in progress.

    Args:
        context: Of the run: what effects are carried out with.
        images: Those that came with the task.
    """

    def __init__(self, context: RunContext, images: tuple[ImageSource, ...] = ()) -> None:
        self._loop = _loop_of(context, images)
        self._context = context
        self._handler: EffectHandler | None = None
        self._events: Generator[Event, None, None] | None = None
        self._aevents: AsyncGenerator[Event | Done, None] | None = None
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._is_between_steps = True

    def events(self) -> Generator[Event, None, None]:
        """Returns the further events, in the calling thread.

        Raises:
            RuntimeError: Another driver is in the midst of a step.
        """
        if self._events is None:
            from ._sync import EffectHandler  # slow to import

            self._leave_driver()
            self._handler = EffectHandler(self._context)
            self._events = drive(self._loop, self._handler.handle, close=False)
        return self._events

    def aevents(self) -> AsyncGenerator[Event | Done, None]:
        """Returns the further events under asyncio.

        Raises:
            RuntimeError: Another driver is in the midst of a step.
        """
        import asyncio

        from ._async import AsyncEffectHandler

        event_loop = asyncio.get_running_loop()
        if self._aevents is None or self._event_loop is not event_loop:
            self._leave_driver()
            self._event_loop = event_loop
            handler = AsyncEffectHandler(self._context)
            self._aevents = adrive(self._loop, handler.handle, close=False)
        return self._aevents

    def note(self, event: Event) -> Event:
        """Takes the event at which the driver is left alone for a while, and returns it."""
        self._is_between_steps = isinstance(event, _BETWEEN_STEPS)
        return event

    def close(self) -> None:
        """Ends the loop."""
        self._close_driver()
        self._loop.close()

    async def aclose(self) -> None:
        """Ends the driver, where it is one of asyncio; `close` is still to come."""
        if self._aevents is not None:
            await self._aevents.aclose()

    def _leave_driver(self) -> None:
        if not self._is_between_steps:
            raise RuntimeError(
                "The run is in the midst of a step, which only the driver can go on with that "
                "began it: change between sync and async, or to another event loop, after a step."
            )
        self._close_driver()
        self._aevents = None  # all that it would do when it is closed is done

    def _close_driver(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None
        if self._handler is not None:
            self._handler.close()
            self._handler = None


def _loop_of(context: RunContext, images: tuple[ImageSource, ...]) -> Generator[Any, Any, None]:
    settings, state, model = context.settings, context.state, context.model
    yield RunStarted(
        task=state.task,
        agent=context.run.agent.name,
        model=" - ".join(filter(None, (type(model).__name__, model.model_id))),
        images=images,
    )
    state.output = yield from react(
        state,
        own_step(context) if settings.has_own_step else settings.action,
        settings.forced_answer,
        settings.planning if settings.is_planned else None,
    )
