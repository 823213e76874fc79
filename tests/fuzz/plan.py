"""One seed, one sequence of frames: valid, nonsensical, and for the most part mutated."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from tailrace.wire.messages.produce import ProduceRequest
from tests.fuzz.batches import damages
from tests.fuzz.guard import Guard, Verdict
from tests.fuzz.mutations import lengths_told, mutations
from tests.fuzz.requests import World, batch, every_request, frame, nonsense, sensible

valid_share: Final = 0.09
nonsense_share: Final = 0.09
length_lie_share: Final = 0.04
batch_damage_share: Final = 0.7  # of mutated Produce requests
produce_share: Final = 0.15  # on top of its versions' turn
unmutated: Final = ("valid", "nonsense")


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
        produces = [one for one in every_request if one[0] == 0]
        while True:
            for turn in chance.sample(every_request, len(every_request)):
                key, version = chance.choice(produces) if chance.random() < produce_share else turn
                kind, data = self._frame(key, version, chance)
                verdict = self.guard.judge(bytes(data))
                if verdict is Verdict.DROP:
                    self.dropped += 1
                    continue
                lie = kind not in unmutated and chance.random() < length_lie_share
                told = len(data)
                if lie:
                    kind, tell = chance.choice([*lengths_told.items()])
                    told = tell(len(data), chance)
                yield Shot(kind, key, version, bytes(data), told, verdict is Verdict.HANG_UP)

    def _frame(self, key: int, version: int, chance: random.Random) -> tuple[str, bytearray]:
        dice = chance.random()
        if dice < nonsense_share:
            return "nonsense", frame(nonsense(key, version, chance), key, version, 0)
        request = sensible(key, version, chance, self.world)
        if dice < nonsense_share + valid_share:
            return "valid", frame(request, key, version, 0)
        if isinstance(request, ProduceRequest) and chance.random() < batch_damage_share:
            kind, damage = chance.choice([*damages.items()])
            return kind, frame(_with_records(request, damage(batch(chance), chance)), key, version, 0)
        kind, mutate = chance.choice([*mutations.items()])
        other_key, other_version = chance.choice(every_request)
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
