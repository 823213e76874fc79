"""A deterministic simulator: machines, disks, network and clocks in one Python process, all driven by one seed.

Code that reaches the outside only through `tailrace.ports` (every Tailrace broker does) runs here unchanged:

    async def scenario(world: World) -> None:
        machine = world.machine("b1")
        ports = machine.boot()                      # the Ports that a broker is started with
        await machine.run(start_my_broker(ports))
        machine.crash(power_loss=True)              # unsynced writes are lost, torn or kept, as the seed decides
        await machine.run(start_my_broker(machine.boot()))

    with World(seed=7) as world:
        world.run(scenario(world))
        print(world.digest)

**What is simulated**

| part | module | what it does |
|---|---|---|
| event loop | `loop` | asyncio on virtual time: a timer an hour away fires as soon as nothing else can run |
| machine | `machine`, `process` | boots, kills, cuts the power of, pauses and resumes one process at a time |
| disk | `storage`, `directory_tree`, `file_content`, `disk` | unsynced writes are lost or torn by power cuts |
| network | `network`, `endpoint`, `link` | TCP with delays, arbitrary splits, partitions, one-way cuts and resets |
| clock | `clock` | drifts, starts with an offset, jumps on request |
| threads | `offload` | work off the event loop, which finishes after a random delay |

**How determinism is kept.** Nothing reads the real clock, the operating system's randomness, sockets or threads: the
loop refuses asyncio calls that would (`refused_calls`). Every random decision comes from a stream that is derived from
the seed and a name (`randomness`), so more draws in one stream leave the others as they were. Callbacks run in the
order in which they were scheduled. The cyclic garbage collector is off during a run.

**How a seed is replayed.** Run the same code with the same seed. `world.digest` hashes everything that happened
(`trace`): equal digests mean the same history, in every Python process, whatever PYTHONHASHSEED is. With
`World(seed, keep_lines=True)` the history can be read line by line in `world.lines`. When the code changes, histories
change too: a seed stands for a history only together with the version of the code.
"""

from tailrace.testing.simulation.failures import Crashed, Dead, Deadlock, NotSimulated, RanTooLong, SimulationFailed
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.machine import Machine
from tailrace.testing.simulation.network import Network
from tailrace.testing.simulation.randomness import Delay, Odds
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.world import World

__all__ = [
    "Crashed",
    "Dead",
    "Deadlock",
    "Delay",
    "Machine",
    "Network",
    "NotSimulated",
    "Odds",
    "RanTooLong",
    "SimLoop",
    "SimulationFailed",
    "Storage",
    "World",
]
