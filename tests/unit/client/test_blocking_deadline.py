"""`tailrace.client.blocking_driver`: a call has one deadline, however many bytes come before it is over."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tailrace.client.blocking_driver import BlockingConnection
from tailrace.client.faults import ConnectionLost
from tailrace.model.addresses import Address

TIMEOUT_S = 0.4
DRIP_S = 0.05  # between two bytes
FRAME = (1000).to_bytes(4, "big") + bytes(1000)


@contextmanager
def dripping_broker() -> Iterator[Address]:
    """A broker that answers with one byte at a time."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                for byte in FRAME:
                    if stopped.wait(DRIP_S):
                        return
                    try:
                        client.send(bytes([byte]))
                    except OSError:  # the client has given up
                        return

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield Address(*listening.getsockname())
        finally:
            stopped.set()
            serving.join()


def test_a_broker_that_drips_bytes_does_not_keep_a_call() -> None:
    with dripping_broker() as address:
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="timed out"):
            BlockingConnection(address, TIMEOUT_S)
        assert TIMEOUT_S <= time.monotonic() - began < len(FRAME) * DRIP_S / 10
