"""A connection of the client's to one broker, with the pipeline's errors."""

import ssl
from contextlib import suppress
from typing import Any, Final

from tailrace.client.blocking_driver import BlockingConnection
from tailrace.client.driver import run_blocking
from tailrace.client.faults import SecurityRefused, Unsupported
from tailrace.client.sasl import Sasl, log_in
from tailrace.model.addresses import Address
from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed
from tailrace.pipeline.kafka.security import SECURITY_HINT, tls_failure
from tailrace.ports.randomness import SystemRandom
from tailrace.wire.primitives import WireError

CLIENT_ID: Final = "tailrace-spark"
# By API key, the newest version that identifies topics by name and takes one group per request.
HIGHEST_USED: Final = {0: 12, 1: 12, 2: 7, 3: 12, 8: 7, 9: 7, 10: 3, 22: 4, 24: 3, 25: 3, 26: 3, 28: 3}


class Connection(BlockingConnection):
    def __init__(
        self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None, sasl: Sasl | None = None
    ) -> None:
        address = Address(host, port)
        try:
            super().__init__(address, timeout_s, client_id=CLIENT_ID, tls=tls, caps=HIGHEST_USED)
        except ssl.SSLError as error:
            raise tls_failure(str(address), error) from None
        except OSError as error:
            raise NoBrokerAvailable(f"no broker at {address}: {error.strerror or error}") from None
        if sasl is not None:
            self._log_in(sasl)

    def _log_in(self, sasl: Sasl) -> None:
        try:
            run_blocking(log_in(super().call, sasl, str(self.address), SystemRandom()))
        except SecurityRefused as refused:
            raise PipelineFailed(f"{refused} (kafka.sasl.mechanism, kafka.sasl.jaas.config)") from None

    def call(self, request: object) -> Any:
        """Send a request and wait for its response. No other request may be in flight."""
        return self.ask(request)

    def send(self, request: object, version: int | None = None) -> None:
        try:
            super().send(request, version)
        except Unsupported as error:
            raise NoBrokerAvailable(str(error)) from None

    def drain(self) -> None:
        with suppress(NoBrokerAvailable):
            super().drain()

    def _lost(self, error: Exception) -> Exception:
        self.close()
        if isinstance(error, ssl.SSLError):
            return tls_failure(str(self.address), error)
        if isinstance(error, WireError):
            return NoBrokerAvailable(f"{self.address} sent an invalid response: {error}")
        # A broker that requires SASL answers only ApiVersions; if it requires TLS or a certificate, not even that.
        hint = f". {SECURITY_HINT}" if self.answers <= 1 else ""
        return NoBrokerAvailable(f"the connection to {self.address} broke: {error}{hint}")
