"""What users need to test against Tailrace: brokers and clusters to embed, and the simulator. Part of the product.

The pytest plugin is loaded into every test run of whoever has Tailrace installed, so what speaks the wire is imported
when it is first asked for.
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
