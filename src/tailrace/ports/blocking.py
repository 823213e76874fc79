"""Blocking connections and pauses, for programs without an event loop: Spark's workers and the command line."""

import socket
import ssl
import time

from tailrace.ports.disk import Buffer

CONNECT_MAX_S = 10.0


class BlockingStream:
    """A TCP connection, plain or with TLS. Every call raises OSError when it fails or takes too long.

    The timeout is that of all calls since the last `begin`: a peer that sends or takes a byte now and then does not
    extend it.
    """

    def __init__(self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self._timeout_s = timeout_s
        self._socket = socket.create_connection((host, port), min(timeout_s, CONNECT_MAX_S))
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except BaseException:
            self._socket.close()
            raise
        self.begin()

    def set_timeout(self, seconds: float) -> None:
        """Takes effect at the next `begin`."""
        self._timeout_s = seconds

    def begin(self) -> None:
        """The calls that follow have the whole timeout."""
        self._deadline = time.monotonic() + self._timeout_s

    def _limit(self) -> None:
        """Let the next call of the socket end at the deadline."""
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left_s)

    def send(self, data: Buffer) -> None:
        view = memoryview(data)
        sent = 0
        while sent < len(view):
            self._limit()
            sent += self._socket.send(view[sent:])

    def receive(self, view: memoryview) -> None:
        """Fill the whole view; ConnectionError if the other side closes the connection before."""
        got = 0
        while got < len(view):
            self._limit()
            count = self._socket.recv_into(view[got:])
            if not count:
                raise ConnectionError("it was closed")
            got += count

    def close(self) -> None:
        self._socket.close()


def pause(seconds: float) -> None:
    time.sleep(seconds)
