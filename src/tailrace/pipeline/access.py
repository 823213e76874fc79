"""Where brokers are, and how to reach them: what every job and every task carries with it."""

from dataclasses import dataclass

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.security import Security, plaintext


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    bootstrap: str
    security: Security = plaintext

    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap, self.security)
