"""For tests against Tailrace: brokers and clusters to start and to break, and the simulator. Part of the product.

The pytest plugin is loaded into every test run where Tailrace is installed. So `Cluster`, which imports the wire
protocol, is imported on first use.
"""

from typing import TYPE_CHECKING

from tailrace.testing.broker import Broker, BrokerFailed

if TYPE_CHECKING:
    from tailrace.testing.cluster import Cluster

__all__ = ["Broker", "BrokerFailed", "Cluster"]


def __getattr__(name: str) -> object:
    if name == "Cluster":
        from tailrace.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
