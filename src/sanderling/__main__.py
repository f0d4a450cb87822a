"""Makes ``python -m sanderling`` the console command."""

import sys

from sanderling.cli import main

if __name__ == "__main__":
    sys.exit(main())
