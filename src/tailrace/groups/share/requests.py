"""ShareGroupHeartbeat: the request of a member, and the checks that need no group. The answer is that of KIP-848."""

from typing import Final

from tailrace.groups.consumer.requests import JOIN_EPOCH
from tailrace.model.faults import InvalidRequest
from tailrace.model.frozen import frozen

LEAVE_EPOCH: Final = -1
MEMBER_ID_MAX_CHARS: Final = 36  # a UUID


@frozen
class ShareHeartbeat:
    """In fields that may be None, None means: unchanged since the last heartbeat."""

    member_id: str
    epoch: int  # the member's; 0: it joins, -1: it leaves
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    names: tuple[str, ...] | None = None  # of the topics that it subscribes to


def check_heartbeat(beat: ShareHeartbeat) -> None:
    """Kafka's rules for the fields of a request."""
    if not 0 < len(beat.member_id) <= MEMBER_ID_MAX_CHARS:
        raise InvalidRequest(f"MemberId must have 1 to {MEMBER_ID_MAX_CHARS} characters, not {len(beat.member_id)}.")
    if beat.rack_id == "":
        raise InvalidRequest("RackId can't be empty.")
    if beat.epoch == JOIN_EPOCH and not beat.names:
        raise InvalidRequest("SubscribedTopicNames must be set when joining.")
    if beat.epoch < LEAVE_EPOCH:
        raise InvalidRequest(f"MemberEpoch {beat.epoch} is invalid.")
