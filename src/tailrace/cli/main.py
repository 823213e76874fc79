"""`tailrace …`: look at the first word, import what that command needs, run it.

`serve` does not pass through typer: its flags are rows of the settings table, which argparse takes as they are,
and a broker should not carry a command-line framework in its memory.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from tailrace.cli.failure import Failed, Misused, report

INTERRUPTED: Final = 130  # what shells use for a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()  # here, where a reader that is gone can still be met
    except BrokenPipeError:
        # `… | head` has seen enough. What Python still holds for it must go nowhere, not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Failed, Misused) as error:
        return report(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        from tailrace.cli.serve.command import serve

        try:
            return serve(words[1:])
        except SystemExit as ended:  # argparse's way to end after --help or a wrong flag
            return ended.code if isinstance(ended.code, int) else 0
    from tailrace.cli.app import run

    return run(words)
