"""For tests of agents, without a key and without a network: models that say what they are told to.

`ScriptedModel` gives replies from a list; `RecordingModel` writes down what a real model said, and
`ReplayModel` says it again. The pytest plugin in `sanderling.testing.plugin` joins the last two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sanderling._lazy import lazy

if TYPE_CHECKING:
    from sanderling.models import RecordingModel as RecordingModel
    from sanderling.models import ReplayModel as ReplayModel
    from sanderling.models import ScriptedModel as ScriptedModel
    from sanderling.models import ScriptedRequest as ScriptedRequest

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "RecordingModel": "sanderling.models",
        "ReplayModel": "sanderling.models",
        "ScriptedModel": "sanderling.models",
        "ScriptedRequest": "sanderling.models",
    },
)
