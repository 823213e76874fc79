"""`confirmed_at`: the time at which a follower is known to have followed, by the answers it must have received."""

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


class Owner:
    me = voter(1)

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def find(self, key: TopicPartition) -> QuorumMember | None:
        return None

    def follower_left(self, member: QuorumMember) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class Peer:
    broker = 2

    def send(self, frame: object) -> None: ...


def confirmed(*turns: tuple[float, str]) -> float:
    """`confirmed_at` after requests sent alone, beside another, or answered at their max wait, at these times."""

    async def play() -> float:
        owner = Owner()
        session = LeaderSession(owner, cast("PeerConnection", Peer()))
        asked = 0
        for owner.time, what in turns:
            if what == "answered":
                session._answer()
            else:
                how = ALONE if what == "alone" else BESIDE_ANOTHER
                head = FetchHead(2, 500, how, 1 << 20, 0, min(asked, 1), asked, [], [], "")
                asked += 1
                session._process(head, asked)
            assert session.heard_at == owner.time or what == "answered"
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
