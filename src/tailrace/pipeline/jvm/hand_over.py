"""What Spark starts as its Python: it passes the call on to the process that is ready, and ends when that call does.

It is run by its path, by an interpreter that looks for no packages, as it has to be there at once:

    python -IS hand_over.py PYTHON DOOR -m pyspark.daemon pyspark.worker

Calls of another kind go to the ordinary interpreter, and so does every call that nobody takes up.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct
from typing import Final

DAEMON: Final = "pyspark.daemon"
NUMBER: Final = Struct(">I")
FAILED: Final = 1


def main(python: str, door: str, *words: str) -> None:
    if words[:2] == ("-m", DAEMON) or words[:1] == ("-c",):
        with socket.socket(socket.AF_UNIX) as connection:
            if process := pass_on(connection, door, words):
                sys.exit(until_it_ends(connection, process))
    os.execv(python, [python, *words])


def pass_on(connection: socket.socket, door: str, words: Sequence[str]) -> int:
    """The process that has taken up the call; 0: there is none."""
    with suppress(OSError):
        call = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
        connection.connect(door)
        socket.send_fds(connection, [NUMBER.pack(len(call))], [0, 1, 2])
        connection.sendall(call)
        told = connection.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(told) == NUMBER.size:
            return int(NUMBER.unpack(told)[0])
    return 0


def until_it_ends(connection: socket.socket, process: int) -> int:
    """How the process ended."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
    with suppress(OSError):
        if code := connection.recv(1):
            return code[0]
    return FAILED


if __name__ == "__main__":
    main(*sys.argv[1:])
