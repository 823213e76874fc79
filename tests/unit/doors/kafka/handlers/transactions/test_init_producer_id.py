"""InitProducerId: ids never repeat; invalid requests get no id."""

import asyncio
from pathlib import Path

from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker


def test_producer_ids_never_repeat(tmp_path: Path) -> None:
    async def take() -> list[int]:
        async with serving(tmp_path) as served:
            answers = [await served.call(InitProducerIdRequest(transaction_timeout_ms=0), v) for v in versions(22)]
            assert all((one.error_code, one.producer_epoch) == (0, 0) for one in answers)
            renewed = await served.call(
                InitProducerIdRequest(transaction_timeout_ms=0, producer_id=answers[0].producer_id, producer_epoch=3), 5
            )
            assert renewed.producer_epoch == 0
            return [one.producer_id for one in (*answers, renewed)]

    taken = asyncio.run(take()) + asyncio.run(take())
    assert len(dict.fromkeys(taken)) == len(taken) == 14
    assert min(taken) >= 0


@with_broker()
async def test_producer_ids_that_cannot_be_given(served: Served) -> None:
    for request, error in (
        (InitProducerIdRequest(transaction_timeout_ms=1, transactional_id="t"), Error.NOT_COORDINATOR),
        (InitProducerIdRequest(transaction_timeout_ms=0, transactional_id=""), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transaction_timeout_ms=0, producer_id=5), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transaction_timeout_ms=0, producer_epoch=5), Error.INVALID_REQUEST),
    ):
        refused = await served.call(request, 5)
        assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (error, -1, -1)
