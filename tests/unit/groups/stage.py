"""What the runners of the transcripts of all kinds of groups share.

One coordinator, one group `g`, one command at a time. The records of a turn are replayed at once, as the driver does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tailrace.groups.any_group import AnyGroup
from tailrace.groups.groups import Groups
from tailrace.groups.requests import JoinRequest, MemberId
from tailrace.groups.turn import GroupTurn, Rules

GROUP_ID = "g"
STEP_MS = 10
RULES = Rules(
    min_session_timeout_ms=1000,
    max_session_timeout_ms=60_000,
    initial_rebalance_delay_ms=0,
    max_size=100,
    offsets_retention_ms=60_000,
    consumer_session_timeout_ms=10_000,
    consumer_heartbeat_interval_ms=1000,
    share_session_timeout_ms=10_000,
    share_heartbeat_interval_ms=1000,
)


def join_request(protocols: Mapping[str, bytes], *, id_required: bool = False) -> JoinRequest:
    """Of a new member."""
    return JoinRequest(
        identity=MemberId(""),
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=dict(protocols),
        id_required=id_required,
    )


class GroupStage:
    def __init__(self) -> None:
        self.moves: dict[Any, None] = {}  # the transitions taken so far, in all transcripts
        self._clear()

    def _clear(self) -> None:
        self.rules = RULES
        self.now_ms = 1_000_000
        self.groups = Groups()
        self.lines: list[str] = []  # what the command has led to

    def _turn(self, act: Callable[[GroupTurn], None], name: str = "") -> None:
        """Let the coordinator act on a request of that client, or of nobody, and write down what follows."""
        raise NotImplementedError

    def stay_alive(self, name: str) -> None:
        """Send a heartbeat."""
        raise NotImplementedError

    def delete(self) -> None:
        self._turn(lambda turn: self.groups.delete(GROUP_ID, turn), "an administrator")

    def expire(self) -> None:
        self._turn(lambda turn: self.groups.expire([GROUP_ID], turn))

    def elapse(self, seconds: str, heartbeating: str) -> None:
        """The clients named send a heartbeat every second, the others send nothing."""
        until = self.now_ms + int(seconds) * 1000
        while self.now_ms < until:
            self.now_ms += STEP_MS
            self._turn(lambda turn: self.groups.ring(turn))
            if self.now_ms % 1000 == 0:
                for name in heartbeating.split():
                    lines = list(self.lines)
                    self.stay_alive(name)
                    self.lines = lines

    def shown_group(self) -> AnyGroup | None:
        """The group, after a line with its kind and state."""
        group = self.groups.groups.get(GROUP_ID)
        self.lines.append("no group" if group is None else f"{group.kind} group, {group.state.value}")
        return group

    def show_offsets(self) -> None:
        for place, one in self.groups.committed(GROUP_ID).items():
            self.lines.append(f"offset of {place.topic}-{place.partition}: {one.offset}")
