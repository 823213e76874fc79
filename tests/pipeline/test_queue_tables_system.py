"""The system test of the HTTP queue with its tables: a sink follows, and is killed half way; so is a broker."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailrace.testing import Cluster
from tests.pipeline.queue_tables import command, contents, fill, following, killed_in_a_transaction, own_database, rows
from tests.unit.doors.http.test_http_queue_libraries import (
    LINES,
    PRODUCERS,
    SHARES,
    SYSTEM_TEST_S,
    counted,
    run,
    until,
    wait_until_half_way,
)

WITH_PRODUCER = """SELECT split_part(m.message, ' ', 1), count(*), count(DISTINCT p.id)
    FROM message m JOIN producer p ON p.id = m.producer_id AND p.topic = m.topic GROUP BY 1 ORDER BY 1"""


@pytest.mark.long
@pytest.mark.timeout(SYSTEM_TEST_S)
@pytest.mark.parametrize("victim", [None, 1])
def test_the_system_test_fills_the_tables(dsn: str, tmp_path: Path, victim: int | None) -> None:
    assert shares_after(dsn, tmp_path, victim, LINES) == SHARES


def test_the_system_test_in_small_fills_the_tables(dsn: str, tmp_path: Path) -> None:
    assert shares_after(dsn, tmp_path, 1, 60) == {"T-1": 111, "T-2": 140, "T-3": 49}


def shares_after(dsn: str, folder: Path, victim: int | None, lines: int) -> dict[str, int]:
    """How many messages of each topic are in the tables, and were given to each consumer.

    Producers begin at brokers 1 and 2, consumers at broker 3. A broker is killed half way, and so is the sink."""
    with Cluster(3, http_port=0, fsync="never", proxied=False) as cluster, own_database(dsn) as queue:
        first, second, third = cluster.endpoints("http").split(",")
        fill(cluster.bootstrap, queue)
        follow = command(cluster.bootstrap, queue, "--every", "0.5")
        with ThreadPoolExecutor() as pool:
            work = pool.submit(run, "p", f"{first},{second}", folder, "--lines", str(lines))
            with killed_in_a_transaction(follow, queue):
                wait_until_half_way("p", cluster.bootstrap, folder, work, lines)
                if victim is not None:
                    cluster.kill(victim)
            assert count(queue) == 0
            with following(follow):
                work.result()
                until(lambda: count(queue) > 0)
        with following(follow) as sink:
            run("c", f"{third},{second}", folder, "--lines", str(lines))
            assert sink.poll() is None, "it goes on, whatever dies"
        fill(cluster.bootstrap, queue)
        found = dict(rows(queue, "SELECT topic, count(*) FROM message GROUP BY 1"))
        assert counted(folder) == [found] * 3
        check_tables(queue, lines, alive=[number for number in (1, 2, 3) if number != victim])
        check_repeated(cluster.bootstrap, dsn, queue)
        return found


def count(queue: str) -> int:
    ((found,),) = rows(queue, "SELECT count(*) FROM message")
    return int(found)


def check_tables(queue: str, lines: int, alive: list[int]) -> None:
    assert rows(queue, "SELECT count(DISTINCT message) FROM message") == [(PRODUCERS * lines,)]
    assert rows(queue, WITH_PRODUCER) == [(f"P-{number}", lines, 3) for number in range(1, PRODUCERS + 1)]
    assert rows(queue, "SELECT topic, count(*) FROM producer GROUP BY 1 ORDER BY 1") == [(name, 5) for name in SHARES]
    consumers = rows(queue, "SELECT topic, count(*), sum(size) FROM consumer GROUP BY 1 ORDER BY 1")
    assert consumers == [(name, 3, 0) for name in SHARES]
    assert rows(queue, "SELECT name FROM topic ORDER BY 1") == [(name,) for name in SHARES]
    assert rows(queue, "SELECT id FROM broker WHERE alive ORDER BY 1") == [(number,) for number in alive]
    assert rows(queue, "SELECT count(*) FROM broker WHERE last_seen IS NULL") == [(0,)]
    assert rows(queue, "SELECT count(*) FROM producer WHERE last_seen < registered_at") == [(0,)]


def check_repeated(bootstrap: str, server: str, queue: str) -> None:
    """Another run changes nothing, and tables that are made anew have the same rows."""
    before = contents(queue)
    assert fill(bootstrap, queue).messages == 0
    assert contents(queue) == before
    with own_database(server) as anew:
        fill(bootstrap, anew)
        made = contents(anew)
        assert [made[table] for table in ("message", "producer")] == [
            before[table] for table in ("message", "producer")
        ]
        assert [row[-1] for row in made["consumer"]] == [row[-1] for row in before["consumer"]]
