"""`python -m pbgi`: the command line, see `pbgi.cli`."""

import sys

from pbgi.cli import main

if __name__ == "__main__":
    sys.exit(main())
