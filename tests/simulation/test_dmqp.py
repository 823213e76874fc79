"""DMQP while simulated brokers crash and networks break: acknowledged messages come out, and none comes out twice."""

import pytest

from tailrace.doors.dmqp.codec import Method, Status
from tailrace.testing.simulation import World
from tests.simulation.dmqp_stage import MESSAGES, PUSHERS, Stage, run


def test_without_a_quorum_everything_is_eagain_and_afterwards_all_works() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.start()
        assert await stage.ask("b1", Method.PUSH, b"before") == (Status.OK, b"")
        for server in stage.servers[1:]:
            server.crash(power_loss=False)
        for method, payload in ((Method.PUSH, b"in doubt"), (Method.POP, b""), (Method.PEEK, b"")):
            assert await stage.ask("b1", method, payload) == (Status.EAGAIN, b"")
        for server in stage.servers[1:]:
            await server.start()
        found = []
        while b"after" not in found:
            if (await stage.ask("b2", Method.PUSH, b"after"))[0] is Status.OK:
                while (answer := await stage.ask("b3", Method.POP))[0] is not Status.ENODATA:
                    found += [answer[1]] if answer[0] is Status.OK else []
        assert found.count(b"in doubt") <= 1
        assert found.count(b"before") <= 1  # the POP that got EAGAIN may have taken it
        assert set(found) <= {b"before", b"in doubt", b"after"}

    with World(7, seconds_max=600.0, steps_max=2_000_000) as world:
        world.run(scenario(Stage(world)))


@pytest.mark.parametrize("seed", range(1, 3))
def test_what_is_acknowledged_comes_out_once(seed: int) -> None:
    history, _ = run(seed)
    history.check()
    assert len(history.acknowledged) == PUSHERS * MESSAGES


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_seeds(seed: int) -> None:
    history, _ = run(seed)
    history.check()
