"""Blocking connections and pauses, for programs without an event loop: Spark's workers and the command line."""

import socket
import ssl
import time

from tailrace.ports.disk import Buffer

CONNECT_MAX_S = 10.0


class BlockingStream:
    """A TCP connection, plain or with TLS. Every call raises OSError when it fails or takes too long."""

    def __init__(self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection((host, port), min(timeout_s, CONNECT_MAX_S))
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            self._socket.settimeout(timeout_s)
        except BaseException:
            self._socket.close()
            raise

    def set_timeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def send(self, data: Buffer) -> None:
        self._socket.sendall(data)

    def receive(self, view: memoryview) -> None:
        """Fill the whole view; ConnectionError if the other side closes the connection before."""
        got = 0
        while got < len(view):
            count = self._socket.recv_into(view[got:])
            if not count:
                raise ConnectionError("it was closed")
            got += count

    def close(self) -> None:
        self._socket.close()


def pause(seconds: float) -> None:
    time.sleep(seconds)
