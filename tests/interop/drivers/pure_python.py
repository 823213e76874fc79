"""What kafka-python and its fork aiokafka have in common: the names of settings, and the form of records."""

import ssl
from typing import Any

from tests.interop.client import TlsOptions
from tests.interop.messages import Reading, Received, Sending


def connection_settings(bootstrap: str, name: str, tls: TlsOptions | None) -> dict[str, Any]:
    secured = {} if tls is None else {"security_protocol": "SSL", "ssl_context": _ssl_context(tls)}
    return {"bootstrap_servers": bootstrap, "client_id": f"interop-{name}", "retry_backoff_ms": 10, **secured}


def _ssl_context(tls: TlsOptions) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.truststore)
    if tls.keystore:
        context.load_cert_chain(tls.keystore)
    return context


def producer_settings(sending: Sending) -> dict[str, Any]:
    size = {} if sending.max_bytes is None else {"max_request_size": sending.max_bytes}
    return {
        "compression_type": None if sending.compression == "none" else sending.compression,
        "acks": sending.acks,
        "enable_idempotence": sending.idempotent,
        **size,
    }


def consumer_settings(reading: Reading) -> dict[str, Any]:
    """For a consumer outside any group."""
    size = {} if reading.fetch_bytes is None else {"max_partition_fetch_bytes": reading.fetch_bytes}
    return {
        "group_id": None,
        "fetch_max_wait_ms": reading.wait_ms,
        "auto_offset_reset": reading.reset,
        "isolation_level": "read_committed" if reading.committed_only else "read_uncommitted",
        **size,
    }


def received_from(record: Any) -> Received:
    return Received(
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple((name, value) for name, value in record.headers),
        timestamp_ms=record.timestamp,
        append_time=record.timestamp_type == 1,
    )
