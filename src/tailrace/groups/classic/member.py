"""A member of a classic group: what its JoinGroup declared, its assignment, and the request it waits with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.groups.records import StoredMember
from tailrace.groups.requests import JoinRequest, Ticket


def size_of(protocols: Mapping[str, bytes]) -> int:
    """The bytes of a member's protocols, which the group's record has to hold."""
    return sum(len(name.encode()) + len(metadata) for name, metadata in protocols.items())


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    id: str
    instance_id: str | None  # of a static member: it keeps its assignment if it rejoins within the session timeout
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes] = field(default_factory=dict)  # metadata by name, in order of preference
    assignment: bytes = b""  # as written to the log
    joining: Ticket | None = None  # a JoinGroup that waits for the other members
    syncing: Ticket | None = None  # a SyncGroup that waits for the leader's assignment
    is_new: bool = False  # has not been in any generation

    @classmethod
    def of(cls, member_id: str, request: JoinRequest) -> "ClassicMember":
        return cls(
            id=member_id,
            instance_id=request.identity.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=dict(request.protocols),
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

    def update(self, request: JoinRequest) -> None:
        """Take over what the member declares when it joins again."""
        self.protocols = dict(request.protocols)
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.session_timeout_ms = request.session_timeout_ms
        self.client_id = request.client_id
        self.client_host = request.client_host

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
