"""What a share group's settings say about the delivery of its records."""

from tailrace.model.frozen import frozen


@frozen
class ShareRules:
    lock_ms: int = 30_000  # how long a member may hold a record before it must acknowledge or renew
    delivery_limit: int = 5  # deliveries after which a record that comes back is archived; 0: no limit
    locks_max: int = 2_000  # records of a partition that may be acquired at a time
    backoff_ms: int = 0  # before a released record is delivered again; 0: at once
    backoff_max_ms: int = 0  # the backoff grows up to this
    backoff_multiplier: float = 2.0  # by which the backoff grows with each delivery
    dead_letters: bool = False  # archived records are copied to a dead letter topic

    def backoff(self, count: int) -> int:
        """How long (in ms) a record rests that was delivered `count` times."""
        if not self.backoff_ms:
            return 0
        grown = self.backoff_ms * self.backoff_multiplier ** min(count - 1, 64)
        return int(min(grown, self.backoff_longest_ms))

    @property
    def backoff_longest_ms(self) -> int:
        return max(self.backoff_max_ms, self.backoff_ms) if self.backoff_ms else 0

    def isolated(self, count: int, wanted: int) -> int | None:
        """How many neighbours that were delivered `count` times may travel together; None: any number.

        One record that crashes its consumers takes its neighbours' deliveries with it. So from half of the limit on
        they travel in smaller and smaller company, and at their last delivery alone."""
        if not self.delivery_limit:
            return None
        if count >= self.delivery_limit - 1:
            return 1
        halvings = count - max(2, -(-self.delivery_limit // 2)) + 1
        return max(1, wanted >> halvings) if halvings > 0 else None
