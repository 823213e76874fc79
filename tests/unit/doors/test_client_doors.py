"""The table of client doors: what is asked for, what is missing, and what stops with an error."""

import asyncio
from pathlib import Path

import pytest

from tailrace.doors import client_doors
from tailrace.doors.client_doors import (
    CLIENT_DOORS,
    CannotOpen,
    ClientDoorKind,
    asked_for,
    check_can_open,
    make_doors,
    stop_doors,
)
from tailrace.model.addresses import is_loopback
from tailrace.model.settings import Settings
from tests.unit.doors.kafka.served import given
from tests.unit.doors.line_door import LineDoor
from tests.unit.doors.test_in_broker import Serving, serving

LINES = ClientDoorKind(
    listener="http", title="lines", setting="http.port", extra="http", libraries=("no_such_library",),
    module="tests.unit.doors.line_door", door="LineDoor",
)  # fmt: skip


def test_doors_are_closed_unless_asked_for() -> None:
    assert asked_for(Settings()) == []
    assert [one.listener for one in asked_for(Settings(grpc_port=0, dmqp_port=8000))] == ["grpc", "dmqp"]


def test_the_flags_are_those_of_the_settings() -> None:
    assert [one.flag for one in CLIENT_DOORS] == ["--http-port", "--grpc-port", "--dmqp-port"]


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "door_of_missing_library.py").write_text("import no_such_library.parser\n")
    (tmp_path / "door_with_a_mistake.py").write_text("import no_other_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CannotOpen, match=r"the lines door \(--http-port\) needs .*: pip install 'tailrace\[http\]'"):
        _of("door_of_missing_library").load()
    with pytest.raises(ModuleNotFoundError, match="no_other_library"):
        _of("door_with_a_mistake").load()


def _of(module: str) -> ClientDoorKind:
    return ClientDoorKind(
        listener="http", title="lines", setting="http.port", extra="http", libraries=("no_such_library",),
        module=module, door="LineDoor",
    )  # fmt: skip


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "broker.example"])
def test_another_host_than_loopback_must_be_allowed(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setattr(client_doors, "CLIENT_DOORS", (LINES,))
    with pytest.raises(CannotOpen, match="--insecure"):
        check_can_open(Settings(host=host, http_port=0))
    check_can_open(Settings(host=host, http_port=0, insecure=True))
    check_can_open(Settings(host=host))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_leave(host: str) -> None:
    assert is_loopback(host)


@given(serving)
async def test_the_doors_that_are_asked_for_are_made(broker: Serving) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_doors, "CLIENT_DOORS", (LINES,))
        assert [type(one) for one in make_doors(broker.host)] == [LineDoor]


@given(serving)
async def test_a_door_that_does_not_stop_is_closed(broker: Serving) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_doors, "GRACE_S", 0.05)
        reader, writer = await asyncio.open_connection(*broker.door.endpoint)
        broker.door.opened.clear()  # what is asked now is never answered
        writer.write(b"orders one\n")
        await broker.door.asked.wait()
        await stop_doors(broker.host, [broker.door])
        assert await reader.read() == b""
        writer.close()
