"""What the members of one consumer group were told, compared with each other.

"Generation" means the generation of the classic protocol, or the member epoch of the consumer protocol (KIP-848).

- In one generation a partition has one owner.
- After an offset commit was acknowledged, every OffsetFetch returns that offset or a higher one.
- Once a member has been assigned a partition in some generation, no commit for it succeeds in an older generation.

The coordinator may drop a group that is empty and has no offsets; its generations then start again, with a lower
generation than before or, if every member has left, with any.
"""

from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


class GroupHistory:
    def __init__(self) -> None:
        self._owners: dict[tuple[int, int], str] = {}  # by generation and partition
        self._newest: dict[int, int] = {}  # by partition: the newest generation in which it was assigned
        self._committed: dict[int, int] = {}  # by partition: the highest acknowledged offset
        self._left: dict[str, None] = {}  # members that have left the group
        self.commits = 0

    @property
    def generations(self) -> int:
        return len({generation for generation, _ in self._owners})

    def assigned(self, generation: int, partition: int, member: str) -> None:
        has_owners = any(owner not in self._left for owner in self._owners.values())
        if not self._committed and (generation < self.newest(partition) or not has_owners):
            self._owners, self._newest = {}, {}
        self._newest[partition] = max(generation, self.newest(partition))
        owner = self._owners.setdefault((generation, partition), member)
        if owner != member:
            raise InvariantViolated(
                Invariant.ONE_OWNER,
                f"partition {partition} in generation {generation} is owned by {owner} and {member}",
            )

    def left(self, member: str) -> None:
        """Record that a member has left, and owns nothing any more."""
        self._left[member] = None

    def newest(self, partition: int) -> int:
        return self._newest.get(partition, -1)

    def committed_so_far(self, partition: int) -> int:
        return self._committed.get(partition, -1)

    def acknowledged(self, generation: int, newest: int, partition: int, offset: int, member: str) -> None:
        """Record an acknowledged commit; `newest` is what `newest(partition)` was when the commit was sent."""
        if generation < newest:
            raise InvariantViolated(
                Invariant.OFFSETS,
                f"{member} committed {offset} of partition {partition} in generation {generation}, "
                f"but it was assigned in generation {newest} before",
            )
        self.commits += 1
        self._committed[partition] = max(offset, self.committed_so_far(partition))

    def fetched(self, partition: int, offset: int, acknowledged: int, member: str) -> None:
        """Check a fetched offset; `acknowledged` is what `committed_so_far` was when the request was sent."""
        if offset < acknowledged:
            raise InvariantViolated(
                Invariant.OFFSETS,
                f"{member} fetched offset {offset} of partition {partition}, but {acknowledged} was acknowledged",
            )
