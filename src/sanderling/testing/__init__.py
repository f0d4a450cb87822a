"""For tests of agents, without a key and without a network: models that say what they are told to.

`ScriptedModel` gives replies from a list; `RecordingModel` writes down what a real model said, and
`ReplayModel` says it again. The pytest plugin in `sanderling.testing.plugin` joins the last two.
"""

from sanderling._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
