"""The cluster's topics as the group state machine needs them; the driver passes an implementation with each turn."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from tailrace.model.ids import Id


class KnownTopic(NamedTuple):
    id: Id
    partitions: int


class Topics(Protocol):
    @property
    def revision(self) -> int:
        """Changes whenever a topic is created or deleted, or gets more partitions."""

    def find(self, name: str) -> KnownTopic | None: ...

    def name_of(self, topic_id: Id) -> str | None: ...

    def is_deleted(self, topic_id: Id) -> bool:
        """Whether a topic is known to have been deleted; one that is not known yet has not."""

    def names(self) -> Mapping[str, None]:
        """All topics, internal ones among them: a regular expression is matched against each name.

        Returns the same mapping object for the same revision."""


class NoTopics:
    """A cluster without topics."""

    revision = 0

    def find(self, name: str) -> KnownTopic | None:
        return None

    def name_of(self, topic_id: Id) -> str | None:
        return None

    def is_deleted(self, topic_id: Id) -> bool:
        return False

    def names(self) -> Mapping[str, None]:
        return MappingProxyType({})
