"""Since when a leader knows that a follower follows: by the answers that it must have had."""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.peers import PeerConnection
from tailrace.broker.replication.follower_session import ALONE, BESIDE_ANOTHER
from tailrace.broker.replication.leader_session import LeaderSession
from tailrace.model.ids import TopicPartition
from tailrace.wire.hot_fetch import FetchHead
from tests.unit.raft.minimal_shell import voter


class Hall:
    me = voter(1)

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def find(self, key: TopicPartition) -> QuorumMember | None:
        return None

    def left(self, member: QuorumMember) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class Peer:
    broker = 2

    def send(self, frame: object) -> None: ...


def confirmed(*turns: tuple[float, str]) -> float:
    """What is known when a request came alone, beside another, or its time was up, at these times."""

    async def play() -> float:
        hall = Hall()
        session = LeaderSession(hall, cast("PeerConnection", Peer()))
        asked = 0
        for hall.time, what in turns:
            if what == "answered":
                session._answer()
            else:
                how = ALONE if what == "alone" else BESIDE_ANOTHER
                head = FetchHead(2, 500, how, 1 << 20, 0, min(asked, 1), asked, [], [], "")
                asked += 1
                session._take(head, asked)
            assert session.heard_at == hall.time or what == "answered"
        return session.confirmed_at

    return asyncio.run(play())


def test_a_first_request_says_nothing() -> None:
    assert confirmed((1.0, "alone")) == float("-inf")


def test_who_asks_again_has_had_the_answer() -> None:
    assert confirmed((1.0, "alone"), (2.0, "answered"), (9.0, "alone")) == 2.0


def test_beside_another_it_may_not_have_had_the_last() -> None:
    early = [(1.0, "alone"), (2.0, "answered"), (3.0, "alone")]
    assert confirmed(*early, (9.0, "beside another")) == 2.0
    assert confirmed(*early, (4.0, "answered"), (9.0, "beside another")) == 2.0
    assert confirmed(*early, (4.0, "answered"), (9.0, "beside another"), (10.0, "answered"), (11.0, "alone")) == 10.0
