"""`python -m tailrace` is `tailrace`."""

import sys

from tailrace.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
