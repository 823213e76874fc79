"""A sample of `make fuzz`: the same kinds of frames, fewer of them, from one seed."""

import asyncio

from tests.fuzz import target
from tests.fuzz.run import fuzz

FRAMES = 2500
CONNECTIONS = 6
SEED = 20


def test_bad_frames_cost_their_sender_alone() -> None:
    """No crash, hang or leak, no failure in the log, nothing damaged on disk, and a client beside notices nothing."""
    with target.make_broker() as broker:
        outcome = asyncio.run(fuzz(broker, SEED, FRAMES, CONNECTIONS, lambda _: None))
    assert outcome.findings == []
    assert outcome.tally.frames == FRAMES
    assert outcome.tally.fates["answered"] > FRAMES // 10
    assert outcome.tally.fates["hung up on"] > FRAMES // 10
