"""The program that Spark starts as its Python: it forwards the call to the ready process and exits when the call ends.

To start quickly, this script is run by its path, in an interpreter that does not search for packages:

    python -IS python_forwarder.py PYTHON DOOR -m pyspark.daemon pyspark.worker

Other kinds of calls, and calls that no ready process accepts, run in the ordinary interpreter.
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
HANDSHAKE_MAX_S: Final = 30.0  # the ready process may still be importing


def main(python: str, door: str, *words: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until it can be forwarded
    if words[:2] == ("-m", DAEMON) or words[:1] == ("-c",):
        with socket.socket(socket.AF_UNIX) as connection:
            if process := forward(connection, door, words):
                sys.exit(until_it_ends(connection, process))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    os.execv(python, [python, *words])


def forward(connection: socket.socket, door: str, words: Sequence[str]) -> int:
    """Forward the call. Return the id of the process that accepted it, or 0 if none did."""
    with suppress(OSError):
        connection.settimeout(HANDSHAKE_MAX_S)
        call = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
        connection.connect(door)
        socket.send_fds(connection, [NUMBER.pack(len(call))], [0, 1, 2])
        connection.sendall(call)
        answer = connection.recv(NUMBER.size, socket.MSG_WAITALL)
        connection.settimeout(None)
        if len(answer) == NUMBER.size:
            return int(NUMBER.unpack(answer)[0])
    return 0


def until_it_ends(connection: socket.socket, process: int) -> int:
    """Wait for the process to end and return its exit code."""

    def terminate(*_: object) -> None:
        with suppress(ProcessLookupError):  # it has ended, and its exit code is in the socket
            os.kill(process, signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    with suppress(OSError):
        if code := connection.recv(1):
            return code[0]
    return FAILED


if __name__ == "__main__":
    main(*sys.argv[1:])
