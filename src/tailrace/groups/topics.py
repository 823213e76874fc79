"""The topics of the cluster, as far as groups have to know them: whoever runs the machine knows them all."""

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
        """Another one whenever a topic appeared, grew or vanished."""

    def find(self, name: str) -> KnownTopic | None: ...

    def name_of(self, topic_id: Id) -> str | None: ...

    def names(self) -> Mapping[str, None]:
        """Those that a regular expression may match: no internal ones. The same mapping for the same revision."""


class NoTopics:
    """A cluster without any."""

    revision = 0

    def find(self, name: str) -> KnownTopic | None:
        return None

    def name_of(self, topic_id: Id) -> str | None:
        return None

    def names(self) -> Mapping[str, None]:
        return MappingProxyType({})
