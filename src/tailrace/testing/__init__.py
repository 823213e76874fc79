"""What users need to test against Tailrace: brokers and clusters to embed, and the simulator. Part of the product."""

from tailrace.testing.broker import Broker, BrokerFailed
from tailrace.testing.cluster import Cluster

__all__ = ["Broker", "BrokerFailed", "Cluster"]
