"""`tailrace.local.held_ports`: a held port is not picked again, and a server can listen there."""

import socket
from pathlib import Path

import pytest

from tailrace.local import held_ports
from tailrace.local.held_ports import FREE_PORTS, HeldPorts, NoPort, is_free


@pytest.fixture
def one_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The only port that can be picked."""
    ports = HeldPorts()
    port = ports.pick()
    ports.close()
    monkeypatch.setattr(held_ports, "FREE_PORTS", range(port, port + 1))
    monkeypatch.setattr(held_ports, "PICKS_MAX", 1)
    return port


def test_a_picked_port_is_not_picked_again_until_it_is_released(one_port: int) -> None:
    first, second = HeldPorts(), HeldPorts()
    assert first.pick() == one_port
    with pytest.raises(NoPort, match="none of 1 ports"):
        second.pick()
    first.close()
    assert second.pick() == one_port
    second.close()


def test_a_named_port_is_held_too(one_port: int) -> None:
    first, second = HeldPorts(), HeldPorts()
    first.hold(one_port)
    with pytest.raises(NoPort):
        second.pick()
    second.hold(one_port)  # several may hold it; it is free when the last one has released it
    first.close()
    with pytest.raises(NoPort):
        HeldPorts().pick()
    second.close()


def test_a_server_can_listen_at_a_held_port_again_and_again(one_port: int) -> None:
    ports = HeldPorts()
    assert ports.pick() == one_port
    for _ in range(2):
        assert is_free(one_port)
        with socket.create_server(("127.0.0.1", one_port)) as server:
            assert not is_free(one_port)
            with socket.create_connection(("127.0.0.1", one_port)):
                server.accept()[0].close()
            ports.hold(one_port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", one_port))
    ports.close()


def test_a_port_where_a_server_listens_is_not_picked(one_port: int) -> None:
    with socket.create_server(("127.0.0.1", one_port)), pytest.raises(NoPort):
        HeldPorts().pick()


def test_ephemeral_ports_are_not_picked() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert FREE_PORTS.stop <= first
