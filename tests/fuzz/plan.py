"""One seed, one sequence of frames: valid, nonsensical, and for the most part mutated."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from tailrace.wire.messages.produce import ProduceRequest
from tests.fuzz.batches import DAMAGES
from tests.fuzz.guard import Guard, Verdict
from tests.fuzz.mutations import LENGTHS_TOLD, MUTATIONS
from tests.fuzz.requests import EVERY_REQUEST, World, batch, frame, nonsense, sensible

VALID_SHARE: Final = 0.09
NONSENSE_SHARE: Final = 0.09
LENGTH_LIE_SHARE: Final = 0.04
BATCH_DAMAGE_SHARE: Final = 0.7  # of mutated Produce requests
PRODUCE_SHARE: Final = 0.15  # on top of its versions' turn
UNMUTATED: Final = ("valid", "nonsense")


class Shot(NamedTuple):
    kind: str
    key: int
    version: int
    frame: bytes  # without its length
    told: int  # the length that is told
    hang_up: bool  # leave without an answer


@dataclass(slots=True)
class Plan:
    world: World
    guard: Guard
    seed: int
    dropped: int = 0  # frames that the guard kept back

    def shots(self) -> Iterator[Shot]:
        """For ever, every API and version in turn."""
        chance = random.Random(self.seed)
        produces = [one for one in EVERY_REQUEST if one[0] == 0]
        while True:
            for turn in chance.sample(EVERY_REQUEST, len(EVERY_REQUEST)):
                key, version = chance.choice(produces) if chance.random() < PRODUCE_SHARE else turn
                kind, data = self._frame(key, version, chance)
                verdict = self.guard.judge(bytes(data))
                if verdict is Verdict.DROP:
                    self.dropped += 1
                    continue
                lie = kind not in UNMUTATED and chance.random() < LENGTH_LIE_SHARE
                told = len(data)
                if lie:
                    kind, tell = chance.choice([*LENGTHS_TOLD.items()])
                    told = tell(len(data), chance)
                yield Shot(kind, key, version, bytes(data), told, verdict is Verdict.HANG_UP)

    def _frame(self, key: int, version: int, chance: random.Random) -> tuple[str, bytearray]:
        dice = chance.random()
        if dice < NONSENSE_SHARE:
            return "nonsense", frame(nonsense(key, version, chance), key, version, 0)
        request = sensible(key, version, chance, self.world)
        if dice < NONSENSE_SHARE + VALID_SHARE:
            return "valid", frame(request, key, version, 0)
        if isinstance(request, ProduceRequest) and chance.random() < BATCH_DAMAGE_SHARE:
            kind, damage = chance.choice([*DAMAGES.items()])
            return kind, frame(_with_records(request, damage(batch(chance), chance)), key, version, 0)
        kind, mutate = chance.choice([*MUTATIONS.items()])
        other_key, other_version = chance.choice(EVERY_REQUEST)
        other = frame(sensible(other_key, other_version, chance, self.world), other_key, other_version, 0)
        return kind, mutate(frame(request, key, version, 0), other, chance)


def _with_records(request: ProduceRequest, records: bytearray) -> ProduceRequest:
    first, *rest = request.topics
    partition, *others = first.partitions
    damaged: Any = replace(first, partitions=(replace(partition, records=bytes(records)), *others))
    return replace(request, topics=(damaged, *rest))


def with_length(shot: Shot, correlation_id: int) -> bytes:
    """The bytes to send; the correlation id tells its sender which one was answered."""
    data = bytearray(struct.pack(">i", shot.told) + shot.frame)
    if len(shot.frame) >= 8:
        struct.pack_into(">i", data, 8, correlation_id)
    return bytes(data)
