"""What Spark starts as its Python: it passes the call on to the process that is ready, and ends when that call does.

It is run by its path, by an interpreter that looks for no packages, as it has to be there at once:

    python -IS hand_over.py PYTHON DOOR -m pyspark.daemon pyspark.worker

Calls of another kind, and all when nobody is behind the door, go to the ordinary interpreter.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from struct import Struct
from typing import Final

daemon: Final = "pyspark.daemon"
number: Final = Struct(">I")
failed: Final = 1


def main(python: str, door: str, *words: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        if (words[:2] == ("-m", daemon) or words[:1] == ("-c",)) and connection.connect_ex(door) == 0:
            sys.exit(pass_on(connection, words))
    os.execv(python, [python, *words])


def pass_on(connection: socket.socket, words: Sequence[str]) -> int:
    call = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
    socket.send_fds(connection, [number.pack(len(call))], [0, 1, 2])
    connection.sendall(call)
    told = connection.recv(number.size, socket.MSG_WAITALL)
    if len(told) < number.size:
        return failed
    (process,) = number.unpack(told)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
    ended = connection.recv(1)
    return ended[0] if ended else failed


if __name__ == "__main__":
    main(*sys.argv[1:])
