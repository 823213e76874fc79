"""A client in another language: a program that takes calls (`call_process.py`).

Its toolchain is fetched when it is first wanted, which `make test` never does: these tests are marked long.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, ClassVar

from benchmarks.fetched import Missing, need
from tests.interop.call_process import CallProcess
from tests.interop.client import Client, TlsOptions
from tests.interop.member import Member
from tests.interop.messages import AS_USUAL, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import (
    ONE_PARTITION,
    GroupShape,
    ShareGroupShape,
    ShareOffset,
    TopicPlan,
    TopicShape,
)
from tests.interop.share_member import Mode, ShareMember


class ProgramReader:
    def __init__(self, program: "Program", number: int) -> None:
        self._program = program
        self.number = number

    def take(self, count: int) -> list[Received]:
        return [_received(one) for one in self._program.ask("take", reader=self.number, count=count)]


class Toolchain(Client):
    """A client that is there when its tools are."""

    toolchain = True
    tools: ClassVar[tuple[str, ...]]

    @classmethod
    def release(cls) -> str:
        """The version that would be fetched."""
        raise NotImplementedError

    @classmethod
    def version(cls) -> str | None:
        return None if cls.why_missing() else cls.release()

    @classmethod
    def why_missing(cls) -> str:
        try:
            need(cls.name, *cls.tools)
        except Missing as missing:
            return str(missing)
        return ""


class Program(Toolchain):
    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        super().__init__(bootstrap, tls)
        more = {} if tls is None else {"INTEROP_PROPERTIES": tls.properties_file()}
        self._process = CallProcess(self.name, [*self.command(), bootstrap], **more)

    @classmethod
    def command(cls) -> list[str]:
        """What takes calls; the bootstrap address comes behind it."""
        raise NotImplementedError

    @classmethod
    def member_command(cls) -> list[str]:
        """A program as in `members/`."""
        raise NotImplementedError

    @classmethod
    def share_member_command(cls) -> list[str]:
        """A program for `ShareMember`."""
        raise NotImplementedError

    def close(self) -> None:
        self._process.kill()

    def ask(self, call: str, **arguments: object) -> Any:
        return self._process.ask(call, **arguments)


class Writer(Program):
    """Writes to partitions and reads from them, and makes topics to do so."""

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        offsets: list[int] = self.ask(
            "produce",
            topic=topic,
            partition=partition,
            **asdict(sending) | {"acks": str(sending.acks)},
            messages=[_told(message) for message in messages],
        )
        return offsets

    @contextmanager
    def reader(self, topic: str, reading: Reading, partition: int = 0) -> Iterator[Reader]:
        number = self.ask("open", topic=topic, partition=partition, **asdict(reading))
        try:
            yield ProgramReader(self, number)
        finally:
            self.ask("close", reader=number)

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        low, high = self.ask("watermarks", topic=topic, partition=partition)
        return low, high


class Topics(Program):
    """Makes topics and describes them."""

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        self.ask("create_topic", topic=topic, **asdict(plan), validate_only=validate_only)

    def delete_topic(self, topic: str) -> None:
        self.ask("delete_topic", topic=topic)

    def list_topics(self) -> list[str]:
        return list(self.ask("list_topics"))

    def describe_topic(self, topic: str) -> TopicShape:
        found = self.ask("describe_topic", topic=topic)
        return TopicShape(
            partitions=tuple(found["partitions"]),
            leaders=tuple(found["leaders"]),
            replicas=tuple(map(tuple, found["replicas"])),
            in_sync=tuple(map(tuple, found["in_sync"])),
            topic_id=found.get("topic_id"),
        )

    def create_partitions(self, topic: str, total: int, *, validate_only: bool = False) -> None:
        self.ask("create_partitions", topic=topic, total=total, validate_only=validate_only)


class Groups(Program):
    """Has members, and looks after groups."""

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> Member:
        return Member(self.member_command(), self.bootstrap, topic, group, strategy, instance)

    def list_groups(self) -> dict[str, str]:
        return dict(self.ask("list_groups"))

    def describe_group(self, group: str) -> GroupShape:
        found = self.ask("describe_group", group=group)
        return GroupShape(state=found["state"], protocol=found["protocol"], clients=tuple(found["clients"]))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        return {int(one): at for one, at in self.ask("committed", group=group, topic=topic).items()}

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self.ask("commit", group=group, topic=topic, offsets=dict(offsets))

    def delete_group(self, group: str) -> None:
        self.ask("delete_group", group=group)


class ShareGroups(Program):
    """Has members of share groups, and looks after these groups."""

    def share_member(self, topic: str, group: str, mode: Mode = "implicit") -> ShareMember:
        return ShareMember(self.name, self.share_member_command(), self.bootstrap, topic, group, mode)

    def list_share_groups(self) -> dict[str, str]:
        return dict(self.ask("list_share_groups"))

    def describe_share_group(self, group: str) -> ShareGroupShape:
        found = self.ask("describe_share_group", group=group)
        members = tuple(tuple(partitions) for partitions in found["members"])
        return ShareGroupShape(state=found["state"], members=members)

    def share_offsets(self, group: str, topic: str) -> dict[int, ShareOffset]:
        found = self.ask("share_offsets", group=group, topic=topic)
        return {int(partition): ShareOffset(*one) for partition, one in found.items()}

    def alter_share_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self.ask("alter_share_offsets", group=group, topic=topic, offsets=dict(offsets))

    def delete_share_offsets(self, group: str, topic: str) -> None:
        self.ask("delete_share_offsets", group=group, topic=topic)

    def delete_share_group(self, group: str) -> None:
        self.ask("delete_share_group", group=group)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _told(message: Message) -> dict[str, object]:
    return {
        "key": _text(message.key),
        "value": _text(message.value),
        "headers": [(name, _text(value)) for name, value in message.headers],
        "timestamp_ms": message.timestamp_ms,
    }


def _received(told: Mapping[str, Any]) -> Received:
    return Received(
        offset=told["offset"],
        key=_bytes(told["key"]),
        value=_bytes(told["value"]),
        headers=tuple((name, _bytes(value)) for name, value in told["headers"]),
        timestamp_ms=told["timestamp_ms"],
        append_time=told["append_time"],
    )
