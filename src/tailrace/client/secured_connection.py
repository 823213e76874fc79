"""One blocking connection to a broker, with TLS and a login where these are wanted, and errors that say what failed."""

import ssl

from tailrace.client.blocking_driver import BlockingConnection
from tailrace.client.driver import run_blocking
from tailrace.client.faults import SecurityRefused
from tailrace.client.sasl import Sasl, log_in
from tailrace.model.addresses import Address
from tailrace.ports.net import tls_problem
from tailrace.ports.randomness import SystemRandom


def open_connection(
    address: Address,
    timeout_s: float,
    *,
    client_id: str,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
) -> BlockingConnection:
    """OSError when the broker cannot be reached; `SecurityRefused` when TLS or the login fails."""
    try:
        connection = BlockingConnection(address, timeout_s, client_id=client_id, tls=tls)
    except ssl.SSLError as error:
        raise SecurityRefused(f"no TLS with {address}: {tls_problem(error)}") from None
    if sasl is not None:
        try:
            run_blocking(log_in(connection.call, sasl, str(address), SystemRandom()))
        except BaseException:
            connection.close()
            raise
    return connection
