"""Whether a caller is on this machine is decided by its own address alone."""

import pytest

from tailrace.doors.grpc.peer_address import is_local, peer_host

LOCAL = [
    "ipv4:127.0.0.1:50000",
    "ipv4:127.8.9.1:1",
    "ipv6:%5B::1%5D:50000",
    "ipv6:[::1]:7",
    "ipv6:[::ffff:127.0.0.1]:7",
]
FOREIGN = ["ipv4:10.0.0.1:50000", "ipv6:%5B2001:db8::1%5D:7", "ipv6:[::ffff:10.0.0.1]:7", "ipv6:[fe80::1%25eth0]:7"]
NO_ADDRESS = ["unix:/tmp/socket", "unix:", "", "ipv4:localhost:7", "ipv4:127.0.0.1.evil.example:7", "127.0.0.1:7"]


@pytest.mark.parametrize("peer", LOCAL)
def test_callers_on_loopback_are_local(peer: str) -> None:
    assert is_local(peer_host(peer))


@pytest.mark.parametrize("peer", FOREIGN + NO_ADDRESS)
def test_no_other_caller_is(peer: str) -> None:
    assert not is_local(peer_host(peer))


def test_the_host_is_told_without_the_port() -> None:
    assert [peer_host(peer) for peer in ("ipv4:10.0.0.1:50000", "ipv6:%5B2001:db8::1%5D:7")] == [
        "10.0.0.1",
        "2001:db8::1",
    ]
