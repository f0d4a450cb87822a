"""Carries out what the loop asks for: under threads (`drive`) and under asyncio (`adrive`)."""

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from ._approval import Allow as Allow
    from ._approval import Approval as Approval
    from ._approval import ApprovalPolicy as ApprovalPolicy
    from ._approval import ApprovalRequest as ApprovalRequest
    from ._approval import Deny as Deny
    from ._approval import Edit as Edit
    from ._async import AsyncEffectHandler as AsyncEffectHandler
    from ._cancel import CancelScope as CancelScope
    from ._children import ChildRunTool as ChildRunTool
    from ._context import RunContext as RunContext
    from ._definition import Definition as Definition
    from ._definition import EventHandler as EventHandler
    from ._definition import RunningAgent as RunningAgent
    from ._definition import RunOptions as RunOptions
    from ._definition import RunSettings as RunSettings
    from ._definition import Sandbox as Sandbox
    from ._drivers import Done as Done
    from ._drivers import adrive as adrive
    from ._drivers import drive as drive
    from ._history import HistoryPolicy as HistoryPolicy
    from ._history import MessageProcessor as MessageProcessor
    from ._limits import Price as Price
    from ._limits import RunLimits as RunLimits
    from ._limits import UsageLimiter as UsageLimiter
    from ._limits import as_limits as as_limits
    from ._manual import FinalText as FinalText
    from ._manual import ManualControl as ManualControl
    from ._policies import CallHost as CallHost
    from ._policies import Policy as Policy
    from ._policies import Scope as Scope
    from ._result import RunResult as RunResult
    from ._run import Run as Run
    from ._session import Session as Session
    from ._sync import EffectHandler as EffectHandler

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "Allow": "._approval",
        "Approval": "._approval",
        "ApprovalPolicy": "._approval",
        "ApprovalRequest": "._approval",
        "AsyncEffectHandler": "._async",
        "CallHost": "._policies",
        "CancelScope": "._cancel",
        "ChildRunTool": "._children",
        "Definition": "._definition",
        "Deny": "._approval",
        "Done": "._drivers",
        "Edit": "._approval",
        "EffectHandler": "._sync",
        "EventHandler": "._definition",
        "FinalText": "._manual",
        "HistoryPolicy": "._history",
        "ManualControl": "._manual",
        "MessageProcessor": "._history",
        "Policy": "._policies",
        "Price": "._limits",
        "Run": "._run",
        "RunContext": "._context",
        "RunLimits": "._limits",
        "RunOptions": "._definition",
        "RunResult": "._result",
        "RunSettings": "._definition",
        "RunningAgent": "._definition",
        "Sandbox": "._definition",
        "Scope": "._policies",
        "Session": "._session",
        "UsageLimiter": "._limits",
        "adrive": "._drivers",
        "as_limits": "._limits",
        "drive": "._drivers",
    },
)
