"""What doors may use of a broker, and all of it.

Six services, in the words of the domain: `topics`, `writer`, `reader`, `groups`, `transactions`, `admin`. Every call
names its `Caller`; what goes wrong is a `Fault`, raised or, where one call is about several things, returned for each.
A door translates its protocol's requests into such calls, and their results back; import-linter forbids it the rest of
the broker.
"""

from dataclasses import dataclass

from tailrace.broker.services.admin import Admin
from tailrace.broker.services.groups import Groups
from tailrace.broker.services.reader import Reader
from tailrace.broker.services.topics import Topics
from tailrace.broker.services.transactions import Transactions
from tailrace.broker.services.writer import Writer
from tailrace.model.caller import Caller

__all__ = ["Admin", "Caller", "Groups", "Reader", "Services", "Topics", "Transactions", "Writer"]


@dataclass(slots=True)
class Services:
    topics: Topics
    writer: Writer
    reader: Reader
    groups: Groups
    transactions: Transactions
    admin: Admin
