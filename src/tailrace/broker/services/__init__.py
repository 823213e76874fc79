"""The services of a broker: the only part of it that doors may use.

There are eight: `topics`, `writer`, `reader`, `groups`, `share_groups`, `queues`, `transactions`, `admin`; and
`cluster_net`, the way to the brokers of the cluster for doors that are clients of the log. Every call names its
`Caller`. A failed call raises a `Fault`; a call about several things (topics, partitions, offsets) returns a result or
a `Fault` for each. A door translates requests of its protocol into such calls, and their results into responses;
import-linter forbids it the rest of the broker.
"""

from dataclasses import dataclass

from tailrace.broker.services.admin import Admin
from tailrace.broker.services.cluster_net import ClusterNet
from tailrace.broker.services.groups import Groups
from tailrace.broker.services.queues import Queues
from tailrace.broker.services.reader import Reader
from tailrace.broker.services.share_groups import ShareGroups
from tailrace.broker.services.topics import Topics
from tailrace.broker.services.transactions import Transactions
from tailrace.broker.services.writer import Writer
from tailrace.model.caller import Caller

__all__ = [
    "Admin",
    "Caller",
    "ClusterNet",
    "Groups",
    "Queues",
    "Reader",
    "Services",
    "ShareGroups",
    "Topics",
    "Transactions",
    "Writer",
]


@dataclass(slots=True)
class Services:
    topics: Topics
    writer: Writer
    reader: Reader
    groups: Groups
    queues: Queues
    share_groups: ShareGroups
    transactions: Transactions
    admin: Admin
    cluster_net: ClusterNet
