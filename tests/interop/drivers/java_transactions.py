"""Kafka's own client and transactions: producers, and what an administrator sees and does."""

import base64
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from typing import Any

from tests.interop.drivers.program import Program
from tests.interop.shapes import TransactionShape
from tests.interop.transactor import Transactor


class JavaTransactor:
    def __init__(self, program: Program, name: str, timeout_ms: int) -> None:
        self._program = program
        self._number = program.ask("open_transactor", id=name, timeout_ms=timeout_ms)

    def _ask(self, call: str, **arguments: Any) -> None:
        self._program.ask(call, transactor=self._number, **arguments)

    def begin(self) -> None:
        self._ask("begin")

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        texts = [base64.b64encode(value).decode() for value in values]
        self._ask("write", topic=topic, partition=partition, values=texts)

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self._ask("commit_offsets", group=group, topic=topic, offsets=dict(offsets))

    def commit(self) -> None:
        self._ask("commit_transaction")

    def abort(self) -> None:
        self._ask("abort_transaction")

    def close(self) -> None:
        self._ask("close_transactor")


class JavaTransactions(Program):
    def transactor(self, name: str, timeout_ms: int = 60_000) -> AbstractContextManager[Transactor]:
        return closing(JavaTransactor(self, name, timeout_ms))

    def list_transactions(self) -> dict[str, str]:
        return dict(self.ask("list_transactions"))

    def describe_transaction(self, name: str) -> TransactionShape:
        found = self.ask("describe_transaction", id=name)
        partitions = tuple((topic, partition) for topic, partition in found.pop("partitions"))
        return TransactionShape(partitions=partitions, **found)

    def open_on(self, topic: str, partition: int = 0) -> dict[int, int]:
        found = self.ask("open_on", topic=topic, partition=partition)
        return {int(producer): start for producer, start in found.items()}

    def fence(self, name: str) -> None:
        self.ask("fence", id=name)
