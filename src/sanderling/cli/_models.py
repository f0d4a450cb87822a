"""``sanderling models``: which models can be used on this machine, and what the others lack."""

from __future__ import annotations

import json
from dataclasses import asdict

from sanderling.console import AgentLogger
from sanderling.models import survey_models

from ._tables import GOOD, SO_WHAT, Row, print_table


def models(*, as_json: bool) -> int:
    """Prints what it finds.

    Returns:
        The exit status: 0 if there is a model that can be used, otherwise 1.
    """
    found = survey_models()
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        logger = AgentLogger()
        for number, place in enumerate(dict.fromkeys(each.place for each in found)):
            rows = [
                Row(
                    (each.name, "usable" if each.usable else "no", f"{each.detail} → {each.todo}"),
                    GOOD if each.usable else SO_WHAT,
                )
                for each in found
                if each.place == place
            ]
            print_table(logger, place, rows, first=number == 0)
    return 0 if any(each.usable for each in found) else 1
