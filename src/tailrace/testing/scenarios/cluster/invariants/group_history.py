"""What a consumer group's members were told, held against each other.

A generation is one of the classic protocol, or a member's epoch in that of KIP-848.

- In one generation a partition has one owner.
- A commit that was acknowledged is there for everybody who asks afterwards, or a later one is.
- Once a member has a partition in some generation, nobody commits it in an older one.

A group that is empty and has no offsets may be forgotten, and counts its generations anew.
"""

from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


class GroupHistory:
    def __init__(self) -> None:
        self._owners: dict[tuple[int, int], str] = {}  # by generation and partition
        self._newest: dict[int, int] = {}  # by partition: the generation in which it was last given to somebody
        self._committed: dict[int, int] = {}  # by partition: the highest offset that was acknowledged
        self.commits = 0

    @property
    def generations(self) -> int:
        return len({generation for generation, _ in self._owners})

    def assigned(self, generation: int, partition: int, member: str) -> None:
        if generation < self.newest(partition) and not self._committed:
            self._owners, self._newest = {}, {}
        self._newest[partition] = max(generation, self.newest(partition))
        owner = self._owners.setdefault((generation, partition), member)
        if owner != member:
            raise InvariantViolated(
                Invariant.ONE_OWNER, f"partition {partition} in generation {generation}: {owner} has it, and {member}"
            )

    def newest(self, partition: int) -> int:
        return self._newest.get(partition, -1)

    def committed_so_far(self, partition: int) -> int:
        return self._committed.get(partition, -1)

    def acknowledged(self, generation: int, newest: int, partition: int, offset: int, who: str) -> None:
        """A commit in `generation`; `newest` is the one that was known when it was sent."""
        if generation < newest:
            raise InvariantViolated(
                Invariant.OFFSETS, f"{who} commits {offset} of {partition} in generation {generation}, {newest} works"
            )
        self.commits += 1
        self._committed[partition] = max(offset, self.committed_so_far(partition))

    def found(self, partition: int, offset: int, known: int, who: str) -> None:
        """What a question answered, that was asked when `known` had been acknowledged."""
        if offset < known:
            raise InvariantViolated(
                Invariant.OFFSETS, f"{who} finds {offset} committed of {partition}, {known} was acknowledged"
            )
