"""Entry point of `tailrace`: import what the given command needs, and run it.

`serve` does not use typer: its flags are generated from the settings table, for which argparse is enough, and a broker
process should not hold a command-line framework in memory. `gateway` has flags of the same table.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.cli.failure import Failed, Misused, report

INTERRUPTED: Final = 130  # the shells' exit code for a program ended by Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()  # here, where a closed pipe can still be handled
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe: no failure. Buffered output must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Failed, Misused) as error:
        return report(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run_server(run: Callable[[list[str]], int], words: list[str]) -> int:
    try:
        return run(words)
    except SystemExit as ended:  # argparse raises it after --help or a wrong flag
        return ended.code if isinstance(ended.code, int) else 0


def _run(words: list[str]) -> int:
    if words[:1] == ["serve"]:
        from tailrace.cli.serve.command import serve

        return _run_server(serve, words[1:])
    if words[:1] == ["gateway"]:
        from tailrace.cli.gateway.command import gateway

        return _run_server(gateway, words[1:])
    from tailrace.cli.app import run

    return run(words)
