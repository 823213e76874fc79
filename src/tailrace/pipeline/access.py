"""Broker addresses and security settings, which every job and every task carries with it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tailrace.client.sasl import Sasl
from tailrace.client.security import PLAINTEXT, Security, TlsSettings
from tailrace.pipeline.kafka.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    bootstrap: str
    security: Security = PLAINTEXT

    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap, self.security)

    def to_dict(self) -> dict[str, Any]:
        """For tasks that get their input as JSON. The dict contains secrets."""
        return asdict(self)


def access_from(told: Mapping[str, Any]) -> Access:
    tls, sasl = told["security"]["tls"], told["security"]["sasl"]
    return Access(
        bootstrap=told["bootstrap"],
        security=Security(tls=None if tls is None else TlsSettings(**tls), sasl=None if sasl is None else Sasl(**sasl)),
    )
