"""A sample of `make fuzz`: the same kinds of frames, fewer of them, from one seed."""

import asyncio

from tests.fuzz import target
from tests.fuzz.run import fuzz

frames = 2500
connections = 6
seed = 20


def test_bad_frames_cost_their_sender_alone() -> None:
    """No crash, hang or leak, no failure in the log, nothing damaged on disk, and a client beside notices nothing."""
    with target.make_broker() as broker:
        outcome = asyncio.run(fuzz(broker, seed, frames, connections, lambda _: None))
    assert outcome.findings == []
    assert outcome.tally.frames == frames
    assert outcome.tally.fates["answered"] > frames // 10
    assert outcome.tally.fates["hung up on"] > frames // 10
