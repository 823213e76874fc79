"""What a seed decides before the run starts: the number of brokers, the fsync policy, delays and settings.

Most plans have three brokers, as most clusters do; the range is one to five. The first broker starts alone, the others
join it, before the faults begin or while they last. The fsync policy is mostly `always`. With `interval` and `never`
the same invariants are checked, but fewer faults are injected: see `faults.budget`.
"""

import random
from typing import Final

from tailrace.model.frozen import frozen
from tailrace.model.limits import MiB
from tailrace.model.settings import Fsync, Settings
from tailrace.testing.simulation import Delay, Odds
from tailrace.testing.simulation.randomness import random_stream

DATA_DIR: Final = "/data"
KAFKA_PORT: Final = 9092
PEER_PORT: Final = 9192
FAULTS_DEFAULT_SECONDS: Final = 12.0
BROKER_COUNTS: Final = (1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5)
SHARE_GROUPS: Final = ("s-plain", "s-rest", "s-dead")
SHARE_GROUP_CHANCE: Final = 0.17  # that one of the share groups reads
ALL_SHARE_GROUPS_CHANCE: Final = 0.03
LATE_SHARE_GROUPS_CHANCE: Final = 0.5  # that they begin late, if there are any
KEYED_FETCH_MAX_BYTES: Final = 1_024  # so that a replica takes many fetches to catch up on a compacted topic
COMPACTION_CHANCE: Final = 0.15  # that there is a compacted topic
FSYNC_POLICIES: Final[tuple[Fsync, ...]] = ("always",) * 8 + ("interval", "never")


@frozen
class Plan:
    seed: int
    fault_seconds: float  # how long faults are injected
    brokers: int
    late_joiners: int  # how many of the brokers join while faults are injected
    fsync: Fsync
    odds: Odds
    segment_bytes: int
    checkpoint_ms: int
    fetch_timeout_ms: int  # how long a follower waits for its leader before it campaigns
    fault_interval_seconds: float  # between two faults, on average
    flips_bit: bool  # once per run
    leader_check_seconds: int  # between two checks of who should lead and who should vote
    producer_rest_max_seconds: float  # after each acknowledgement
    share_groups: tuple[str, ...]  # that read, too
    late_share_groups: bool  # they begin while faults are injected
    compacts: bool  # whether there is a compacted topic
    keyed_segment_bytes: int  # of the compacted topic, as the next two
    keyed_rest_max_seconds: float
    slow_cleaner: str  # the broker that compacts late, so that its log has more than the horizon allows; or none
    tombstones_kept_ms: int  # delete.retention.ms: a replica that was away for longer may have to begin anew
    peer_tls: bool  # whether brokers connect to each other with TLS

    @property
    def replicas(self) -> int:
        return min(3, self.brokers)

    def _cleaner_backoff_ms(self, host: str) -> int:
        if not self.compacts:
            return 15_000
        return 2_500 if host == self.slow_cleaner else 250

    def settings(self, host: str, join: str) -> Settings:
        return Settings(
            host=host,
            kafka_port=KAFKA_PORT,
            peer_port=PEER_PORT,
            join=join,
            data_dir=DATA_DIR,
            fsync=self.fsync,
            fsync_interval_ms=200,
            log_segment_bytes=self.segment_bytes,
            log_checkpoint_interval_ms=min(self.checkpoint_ms, 300) if self.compacts else self.checkpoint_ms,
            log_checkpoint_interval_bytes=MiB,
            log_cleaner_backoff_ms=self._cleaner_backoff_ms(host),
            replica_fetch_max_bytes=KEYED_FETCH_MAX_BYTES if self.compacts else MiB,
            log_retention_check_interval_ms=60_000,
            log_scrub_enable=self.flips_bit,
            log_scrub_interval_ms=1_000,
            auto_create_topics_enable=False,
            leader_imbalance_check_interval_seconds=self.leader_check_seconds,
            controller_quorum_fetch_timeout_ms=self.fetch_timeout_ms,
            controller_quorum_election_timeout_ms=self.fetch_timeout_ms // 2,
            replica_fetch_wait_max_ms=self.fetch_timeout_ms // 4,
            offsets_topic_num_partitions=1,
            transaction_state_log_num_partitions=1,
            share_coordinator_state_topic_num_partitions=1,
            group_initial_rebalance_delay_ms=100,
            group_min_session_timeout_ms=500,
            group_consumer_heartbeat_interval_ms=500,
            group_consumer_session_timeout_ms=2_000,
            group_share_heartbeat_interval_ms=500,
            group_share_session_timeout_ms=2_000,
            group_share_initialize_retry_interval_ms=1_000,
            listener_security_protocol_map="peer:SSL" if self.peer_tls else "",
            ssl_keystore_location=f"{host}.pem",
            ssl_truststore_location="authority.pem",
        )


def plan_for(seed: int, fault_seconds: float = FAULTS_DEFAULT_SECONDS) -> Plan:
    rng = random_stream(seed, "plan")
    brokers = rng.choice(BROKER_COUNTS)
    odds = _odds(rng)
    compaction = random_stream(seed, "plan", "cleaner")
    shares = random_stream(seed, "plan", "shares")
    return Plan(
        seed=seed,
        fault_seconds=fault_seconds,
        brokers=brokers,
        late_joiners=rng.randrange(brokers) if rng.random() < 0.3 else 0,
        fsync=rng.choice(FSYNC_POLICIES),
        odds=odds,
        segment_bytes=rng.choice([3_000, 20_000, 1_000_000]),
        checkpoint_ms=rng.choice([300, 2_000, 60_000]),
        fetch_timeout_ms=rng.choice([800, 2_000]) if odds.link.slow_seconds < 0.5 else 2_000,
        fault_interval_seconds=rng.choice([0.3, 0.6, 1.2]),
        producer_rest_max_seconds=rng.choice([0.15, 0.3, 0.6]),
        flips_bit=rng.random() < 0.2,
        leader_check_seconds=rng.choice([1, 5]),
        peer_tls=random_stream(seed, "plan", "tls").random() < 0.25,
        compacts=compaction.random() < COMPACTION_CHANCE,
        keyed_segment_bytes=compaction.choice([1_024, 2_000]),
        keyed_rest_max_seconds=compaction.choice([0.05, 0.15]),
        tombstones_kept_ms=compaction.choice([0, 100, 500]),
        slow_cleaner=compaction.choice(["", "b1", "b2", "b3"]),
        share_groups=_share_groups(shares),
        late_share_groups=shares.random() < LATE_SHARE_GROUPS_CHANCE,
    )


def _share_groups(rng: random.Random) -> tuple[str, ...]:
    draw, one = rng.random(), rng.choice(SHARE_GROUPS)
    if draw < ALL_SHARE_GROUPS_CHANCE:
        return SHARE_GROUPS
    return (one,) if draw < ALL_SHARE_GROUPS_CHANCE + SHARE_GROUP_CHANCE else ()


def _odds(rng: random.Random) -> Odds:
    link = Delay(
        low_seconds=0.00005,
        high_seconds=rng.choice([0.001, 0.005]),
        slow_chance=rng.choice([0.001, 0.01, 0.03]),
        slow_seconds=rng.choice([0.2, 1.0]),
    )
    sync = Delay(
        low_seconds=0.0001,
        high_seconds=rng.choice([0.002, 0.01]),
        slow_chance=rng.choice([0.01, 0.1]),
        slow_seconds=rng.choice([0.1, 0.5]),
    )
    return Odds(
        link=link,
        sync=sync,
        silence=Delay(low_seconds=2.0, high_seconds=15.0),
        retransmit=Delay(low_seconds=0.01, high_seconds=0.4),
        cold_chance=rng.choice([0.0, 0.02, 0.2]),
        split_chance=rng.choice([0.02, 0.1, 0.3]),
    )
