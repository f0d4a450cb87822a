"""Runs every benchmark; ends with status 1 where a goal is missed."""

import sys

from . import imports, loop, models, sandbox

sys.exit(not all([imports.main(), loop.main(), models.main(), sandbox.main()]))
