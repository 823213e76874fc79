"""What a share partition costs in memory, however many records pass through it."""

from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import Acknowledge, Acknowledgement, Acquired, DeliveryTurn, SharePartition, Span
from tailrace.queues.state import ShareState

BATCHES = 1_000
BATCH_RECORDS = 3


def turn() -> DeliveryTurn:
    return DeliveryTurn(0.0, 0, ShareRules())


def fetch(share: SharePartition, spans: list[Span], wanted: int = 1) -> list[int]:
    """Read from the first wanted offset on, as many batches as there are, and take single records."""
    acquired: list[Acquired] = []
    first = share.wanted(0, turn())
    assert first is not None
    left = [one for one in spans if one.last >= first]
    share.acquire("ada", first, left[:50], wanted, acquired, turn(), exact=True)
    return [offset for one in acquired for offset in range(one.first, one.last + 1)]


def settle(share: SharePartition, offset: int, kind: Acknowledge) -> None:
    write = share.acknowledge("ada", [Acknowledgement(offset, offset, [kind])], turn())
    share.written(write, turn(), ok=True)


def test_one_stuck_record_does_not_make_runs_of_all_batches_behind_it() -> None:
    share = SharePartition(ShareState(state_epoch=0, start=0, complete_count=0), turn())
    spans = [Span(at, at + BATCH_RECORDS - 1) for at in range(0, BATCHES * BATCH_RECORDS, BATCH_RECORDS)]
    assert fetch(share, spans) == [0]
    for offset in range(1, BATCHES * BATCH_RECORDS):
        assert fetch(share, spans) == [offset]
        settle(share, offset, Acknowledge.ACCEPT)
    assert len(share._runs) == 2


def test_a_record_that_is_delivered_again_does_not_make_runs_of_the_markers_behind_it() -> None:
    """Each transaction ends with a control batch, which is read again with the record before it."""
    share = SharePartition(ShareState(state_epoch=0, start=0, complete_count=0), turn())
    spans = [
        one for at in range(0, 40, 4) for one in (Span(at, at + 1), Span(at + 2, at + 2, deliverable=False))
    ]  # with a hole after each marker
    assert fetch(share, spans) == [0]
    while offsets := fetch(share, spans):
        settle(share, offsets[0], Acknowledge.ACCEPT)
    settle(share, 0, Acknowledge.RELEASE)
    assert fetch(share, spans, wanted=500) == [0]
    assert len(share._runs) == 2
