"""What users need to test against Tailrace: brokers to embed, and the simulator. Part of the product."""

from tailrace.testing.broker import Broker, BrokerFailed

__all__ = ["Broker", "BrokerFailed"]
