"""The system test of the HTTP queue at its full size, with its tables: a sink follows, and is killed half way."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailrace.testing import Cluster
from tests.pipeline.queue_tables import command, contents, fill, own_database, rows
from tests.unit.doors.http.test_http_queue_libraries import (
    SHARES,
    counted,
    run,
    until,
    wait_until_half_way,
)

pytestmark = pytest.mark.long
LINES = 993
WITH_PRODUCER = """SELECT split_part(m.message, ' ', 1), count(*), count(DISTINCT p.id)
    FROM message m JOIN producer p ON p.id = m.producer_id AND p.topic = m.topic GROUP BY 1 ORDER BY 1"""


def count(queue: str) -> int:
    ((found,),) = rows(queue, "SELECT count(*) FROM message")
    return int(found)


@pytest.mark.parametrize("victim", [None, 1])
def test_the_system_test_fills_the_tables(dsn: str, tmp_path: Path, victim: int | None) -> None:
    """Producers at brokers 1 and 2, consumers at broker 3 first; a broker dies half way, and the sink does."""
    with Cluster(3, http_port=0, fsync="never", proxied=False) as cluster, own_database(dsn) as queue:
        first, second, third = cluster.endpoints("http").split(",")
        fill(cluster.bootstrap, queue)
        follow = command(cluster.bootstrap, queue, "--every", "0.5")
        sink = subprocess.Popen(follow)
        try:
            with ThreadPoolExecutor() as pool:
                work = pool.submit(run, "p", f"{first},{second}", tmp_path)
                wait_until_half_way("p", cluster.bootstrap, tmp_path, work)
                if victim is not None:
                    cluster.kill(victim)
                until(lambda: count(queue) > 0)
                sink.kill()
                sink.wait()
                work.result()
            assert 0 < count(queue) < sum(SHARES.values())
            sink = subprocess.Popen(follow)
            run("c", f"{third},{second}", tmp_path)
            assert sink.poll() is None, "it goes on, whatever dies"
        finally:
            sink.kill()
            sink.wait()
        assert counted(tmp_path) == [SHARES] * 3
        fill(cluster.bootstrap, queue)
        check_tables(queue, alive=[number for number in (1, 2, 3) if number != victim])
        before = contents(queue)
        assert fill(cluster.bootstrap, queue).messages == 0
        assert contents(queue) == before
        with own_database(dsn) as anew:
            fill(cluster.bootstrap, anew)
            assert contents(anew)["message"] == before["message"]
            assert contents(anew)["consumer"] == before["consumer"]


def check_tables(queue: str, alive: list[int]) -> None:
    assert dict(rows(queue, "SELECT topic, count(*) FROM message GROUP BY 1")) == SHARES
    assert dict(rows(queue, "SELECT topic, count(DISTINCT message) FROM message GROUP BY 1")) == SHARES
    assert rows(queue, WITH_PRODUCER) == [(f"P-{number}", LINES, 3) for number in range(1, 6)]
    assert rows(queue, "SELECT topic, count(*) FROM producer GROUP BY 1 ORDER BY 1") == [(name, 5) for name in SHARES]
    consumers = rows(queue, "SELECT topic, count(*), sum(size) FROM consumer GROUP BY 1 ORDER BY 1")
    assert consumers == [(name, 3, 0) for name in SHARES]
    assert rows(queue, "SELECT name FROM topic ORDER BY 1") == [(name,) for name in SHARES]
    assert rows(queue, "SELECT id FROM broker WHERE alive ORDER BY 1") == [(number,) for number in alive]
    assert rows(queue, "SELECT count(*) FROM broker WHERE last_seen IS NULL") == [(0,)]
    assert rows(queue, "SELECT count(*) FROM producer WHERE last_seen IS NULL OR last_seen < registered_at") == [(0,)]
