"""`tailrace.v1.Producer`: append records, one request at a time or as a stream.

A stream reads ahead of its answers, at most `GRPC_STREAM_UNANSWERED_MAX` requests, and no further than the producer's
buffer has room. Its records are handed to the producer one request after the other, so those of one partition stay in
the order of the stream; answers are written in that order, too.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from tailrace.client.faults import ClientError
from tailrace.client.producer import NotWritten, Written
from tailrace.client.runs import Run, send_by_partition
from tailrace.doors.grpc.calls import Call, Failed, Service, Stream
from tailrace.doors.grpc.outcomes import Outcome, let_go, outcomes
from tailrace.doors.grpc.schema import Schema
from tailrace.doors.grpc.statuses import status_of
from tailrace.doors.grpc.v1.records import checked_name, new_records
from tailrace.doors.upstream import Upstream
from tailrace.model.faults import Fault
from tailrace.model.limits import GRPC_STREAM_UNANSWERED_MAX

Handed = tuple[int, list[Run] | ClientError | Fault]  # the id of a request, and what the producer has got of it


class Producing:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1
        self._rpc = schema.rpc

    def service(self) -> Service:
        return Service(
            name="tailrace.v1.Producer",
            unary={"Produce": self.produce},
            streaming={"ProduceStream": self.produce_stream},
        )

    async def produce(self, request: Any, call: Call) -> Any:
        found = await outcomes(await self._send(request, call))
        problem = _worst(found)
        if problem is None:
            answer = self._types.ProduceResponse()
            _add_positions(answer.written, found)
            return answer
        detailed = [self._failure(found)] if _may_have_some(found) else []
        raise Failed(problem, detailed)

    async def produce_stream(self, stream: Stream) -> None:
        handed: asyncio.Queue[Handed | None] = asyncio.Queue(GRPC_STREAM_UNANSWERED_MAX)
        answering = asyncio.get_running_loop().create_task(self._answer(stream, handed))
        try:
            while not answering.done() and (request := await stream.read()) is not None:
                try:
                    await handed.put((request.id, await self._send(request, stream.call)))
                except (ClientError, Fault) as problem:
                    await handed.put((request.id, problem))
            await handed.put(None)
            await answering
        finally:
            answering.cancel()
            while not handed.empty():
                _let_go_of(handed.get_nowait())

    async def _answer(self, stream: Stream, handed: "asyncio.Queue[Handed | None]") -> None:
        while (one := await handed.get()) is not None:
            number, sent = one
            problem = sent if isinstance(sent, Exception) else None
            found: list[Outcome] = []
            if not isinstance(sent, Exception):
                found = await outcomes(sent)
                problem = _worst(found)
            if problem is None:
                response = self._types.ProduceStreamResponse(id=number)
                _add_positions(response.written, found)
            else:
                status = status_of(problem)
                error = self._rpc.Status(code=status.code, message=status.text)
                if _may_have_some(found):
                    error.details.add().Pack(self._failure(found))
                response = self._types.ProduceStreamResponse(id=number, error=error)
            await stream.write(response)

    async def _send(self, request: Any, call: Call) -> list[Run]:
        topic = checked_name(request.topic, "topic")
        records = new_records(request.records, self._upstream.cluster.driver.wall_ms())
        with self._upstream.producers.of(call.caller.principal) as producer:
            return await send_by_partition(producer, topic, records)

    def _failure(self, found: Sequence[Outcome]) -> Any:
        failure = self._types.ProduceFailure()
        for one in found:
            outcome = failure.outcomes.add()
            if isinstance(one, Written):
                _set_position(outcome.written, one)
            elif one.may_be_written:
                outcome.may_be_written = str(one)
            else:
                outcome.not_written = str(one)
        return failure


def _add_positions(written: Any, found: Sequence[Outcome]) -> None:
    for one in found:
        assert isinstance(one, Written)
        _set_position(written.add(), one)


def _set_position(position: Any, written: Written) -> None:
    """Field by field: it takes less than half as long as a message that is made of names and copied."""
    (position.topic, position.partition), position.offset = written


def _worst(found: Sequence[Outcome]) -> NotWritten | None:
    """The failure that is reported: one whose record may be written all the same, if there is one."""
    problems = [one for one in found if isinstance(one, NotWritten)]
    return max(problems, key=lambda one: one.may_be_written, default=None)


def _may_have_some(found: Sequence[Outcome]) -> bool:
    """Whether the outcomes differ from "nothing was written"."""
    return any(isinstance(one, Written) or one.may_be_written for one in found)


def _let_go_of(handed: Handed | None) -> None:
    """The stream has ended: the outcomes of its records are not reported."""
    if handed is not None and not isinstance(handed[1], Exception):
        let_go([run.written for run in handed[1]])
