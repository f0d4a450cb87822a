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
    from ._async import AsyncPerformer as AsyncPerformer
    from ._control import Control as Control
    from ._delegates import Delegate as Delegate
    from ._delegates import Errand as Errand
    from ._drivers import Done as Done
    from ._drivers import adrive as adrive
    from ._drivers import drive as drive
    from ._history import MessageProcessor as MessageProcessor
    from ._history import Processed as Processed
    from ._limits import Meter as Meter
    from ._limits import Price as Price
    from ._limits import RunLimits as RunLimits
    from ._limits import time_limit as time_limit
    from ._policies import Consult as Consult
    from ._policies import Policy as Policy
    from ._policies import Scope as Scope
    from ._services import Services as Services
    from ._sync import Performer as Performer

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "Allow": "._approval",
        "Approval": "._approval",
        "ApprovalPolicy": "._approval",
        "ApprovalRequest": "._approval",
        "AsyncPerformer": "._async",
        "Consult": "._policies",
        "Control": "._control",
        "Delegate": "._delegates",
        "Deny": "._approval",
        "Done": "._drivers",
        "Edit": "._approval",
        "Errand": "._delegates",
        "MessageProcessor": "._history",
        "Meter": "._limits",
        "Performer": "._sync",
        "Policy": "._policies",
        "Price": "._limits",
        "Processed": "._history",
        "RunLimits": "._limits",
        "Scope": "._policies",
        "Services": "._services",
        "adrive": "._drivers",
        "drive": "._drivers",
        "time_limit": "._limits",
    },
)
