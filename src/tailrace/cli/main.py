"""`tailrace …`: look at the first word, import what that command needs, run it.

`serve` does not pass through typer: its flags are rows of the settings table, which argparse takes as they are,
and a broker should not carry a command-line framework in its memory.
"""

import sys
from collections.abc import Sequence

from tailrace.cli.failure import Failed, Misused, report

interrupted = 130  # what shells use for a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["serve"]:
            from tailrace.cli.serve import serve

            return serve(words[1:])
        from tailrace.cli.app import run

        return run(words)
    except (Failed, Misused) as error:
        return report(error)
    except KeyboardInterrupt:
        return interrupted
