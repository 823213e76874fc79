"""What is set on real sockets: small frames leave at once, and a peer that is cut off is noticed in seconds."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from tailrace.broker.peers import Peers, accepted, outgoing
from tailrace.broker.peers.outgoing import SILENCE_MAX_S
from tailrace.model.ids import BrokerId
from tailrace.model.settings import Settings
from tailrace.ports import system_ports
from tests.unit.broker.peers.listening import listening
from tests.unit.broker.peers.stage import CLUSTER_ID, LEVELS, Notes, voter
from tests.unit.doors.kafka.hostile import until


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no TCP_USER_TIMEOUT")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_both_ends_of_a_lane(run: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[asyncio.BaseTransport] = []
    for module in (accepted, outgoing):
        real = module.give_up_after

        def seen(transport: asyncio.BaseTransport, seconds: float, real: Callable[..., None] = real) -> None:
            real(transport, seconds)
            made.append(transport)

        monkeypatch.setattr(module, "give_up_after", seen)

    async def scenario() -> None:
        async with listening() as one:
            notes = Notes()
            other = Peers(system_ports(), Settings(), voter(2), CLUSTER_ID, notes, notes.call, LEVELS)
            other.know(BrokerId(1), "127.0.0.1", one.port)
            await until(lambda: other.live == (1,))
            assert len(made) == 2
            for transport in made:
                found = transport.get_extra_info("socket")
                assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
                assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == SILENCE_MAX_S * 1000
            await other.close()

    run(scenario())
