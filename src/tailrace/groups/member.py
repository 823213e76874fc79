"""One member of a classic group."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.groups.records import StoredMember
from tailrace.groups.requests import Joining, MemberId, Ticket


def size_of(protocols: Mapping[str, bytes]) -> int:
    """The bytes of what a member says of itself."""
    return sum(len(name.encode()) + len(metadata) for name, metadata in protocols.items())


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    id: str
    instance_id: str | None  # of a static member: it may be away for a session timeout, and come back as it was
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes] = field(default_factory=dict)  # the favourite first
    assignment: bytes = b""  # as it stands in the log
    joining: Ticket | None = None  # waits until all have joined
    syncing: Ticket | None = None  # waits until the work is shared out
    is_new: bool = False  # has not been in a generation yet

    @classmethod
    def of(cls, member_id: str, wanted: Joining) -> "ClassicMember":
        return cls(
            id=member_id,
            instance_id=wanted.who.instance_id,
            client_id=wanted.client_id,
            client_host=wanted.client_host,
            rebalance_timeout_ms=wanted.rebalance_timeout_ms,
            session_timeout_ms=wanted.session_timeout_ms,
            protocols=dict(wanted.protocols),
            is_new=True,
        )

    @classmethod
    def restored(cls, stored: StoredMember, protocol: str | None) -> "ClassicMember":
        timeout_ms = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
        return cls(
            id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=timeout_ms,
            session_timeout_ms=stored.session_timeout,
            protocols={} if protocol is None else {protocol: stored.subscription},
            assignment=stored.assignment,
        )

    def renew(self, wanted: Joining) -> None:
        """What it says of itself when it joins again."""
        self.protocols = dict(wanted.protocols)
        self.rebalance_timeout_ms = wanted.rebalance_timeout_ms
        self.session_timeout_ms = wanted.session_timeout_ms
        self.client_id = wanted.client_id
        self.client_host = wanted.client_host

    @property
    def identity(self) -> MemberId:
        return MemberId(self.id, self.instance_id)

    @property
    def size_bytes(self) -> int:
        return size_of(self.protocols)

    def stored(self, protocol: str | None, assignment: bytes) -> StoredMember:
        return StoredMember(
            member_id=self.id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.protocols.get(protocol or "", b""),
            assignment=assignment,
        )
