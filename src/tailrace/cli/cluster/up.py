"""`tailrace cluster up`: one process for each broker, in the foreground, and nothing of them left behind.

It starts them, tells when all is well, and then only watches: a broker that dies is news, told loudly, and not repaired
in silence. Ctrl-C or SIGTERM asks all of them to stop, at the same time; whoever asks again does not want to wait.
Should this process itself be killed, its brokers see their standard input end, and stop.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import say
from tailrace.cli.serve.command import settings_from
from tailrace.model.settings import SettingError, rows, variable_name, yaml_name
from tailrace.testing.broker import BrokerFailed
from tailrace.testing.broker_log import last_lines
from tailrace.testing.broker_places import NoSeat
from tailrace.testing.cluster import Cluster
from tailrace.testing.held_ports import is_free

LOOK_AGAIN_S: Final = 0.2
SAME_WISH_S: Final = 1.0  # `timeout` and process groups deliver one wish to stop twice
OUR_OWN: Final = ("broker.id", "kafka.port", "peer.port", "advertised.peer.port", "join", "data.dir")


def run_cluster(brokers: int | None, data_dir: Path, base_port: int | None, fsync: str | None) -> None:
    cluster = new_cluster(brokers, data_dir, base_port, _settings(fsync), echo=True)
    Stop(cluster)
    try:
        _run(cluster)
    except KeyboardInterrupt:
        _stop(cluster)
    except BrokerFailed as error:
        raise Failed(f"cannot start the cluster: {error}") from None
    finally:
        with suppress(BrokerFailed):  # what went wrong before is the news
            cluster.close()


def new_cluster(
    brokers: int | None, data_dir: Path | None, base_port: int | None, settings: dict[str, object], *, echo: bool
) -> Cluster:
    """Not started yet; what makes no sense, or is in the way, is said before anything starts."""
    try:
        cluster = Cluster(
            brokers,
            data_dir=data_dir,
            base_port=base_port,
            proxied=False,
            racks=(),
            on_log=_print_log if echo else None,
            **settings,
        )
    except NoSeat as error:
        raise Misused(f"{error}.\nGive another --data-dir, or leave --brokers and --base-port out.") from None
    except SettingError as error:
        raise Misused(f"{error}.") from None
    except OSError as error:
        raise Failed(
            f"cannot use {data_dir}: {error.strerror or error}.\nGive another place with --data-dir."
        ) from None
    for seat in cluster.seats:
        for port in (seat.kafka_port, seat.peer_port):
            if not is_free(port):
                raise Failed(
                    f"cannot start: port {port} of broker {seat.id} is in use.\n"
                    f"Is the cluster in {cluster.data_dir} up already? Else stop that program, or start a new cluster "
                    "with --data-dir and another --base-port."
                )
    return cluster


class Stop:
    """The wish to stop: the first time an exception in the main thread, later on the end of all brokers at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._is_asked = False
        self._cluster = cluster
        self._patient_until = 0.0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._patient_until = time.monotonic() + SAME_WISH_S
            raise KeyboardInterrupt
        if time.monotonic() > self._patient_until:
            for broker in self._cluster.brokers:
                if broker.is_running:
                    os.kill(broker.pid, signal.SIGKILL)


def _settings(fsync: str | None) -> dict[str, object]:
    """What the environment says for all brokers; each one's own place is ours to give."""
    settings_from({}, os.environ, {}, "")  # says what makes no sense
    given = {name: os.environ.get(variable_name(name)) for name in rows() if name not in OUR_OWN}
    told: dict[str, object] = {yaml_name(name): value for name, value in given.items() if value is not None}
    return told if fsync is None else told | {"fsync": fsync}


def _print_log(broker_id: int, line: str) -> None:
    print(f"broker {broker_id} | {line}", file=sys.stderr, flush=True)


def _run(cluster: Cluster) -> None:
    cluster.start()
    print(f"ready kafka={cluster.bootstrap}", flush=True)
    alive = list(cluster.ids)
    while alive:
        for one in alive:
            if not cluster.broker(one).is_running:
                alive.remove(one)
                _report(cluster, one, cluster.broker(one).wait())
                break
        else:
            time.sleep(LOOK_AGAIN_S)
    raise Failed("no broker is left.")


def _report(cluster: Cluster, broker_id: int, code: int) -> None:
    seat, broker = cluster.seats[broker_id - 1], cluster.broker(broker_id)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    say(
        f"tailrace: BROKER {broker_id} IS DOWN: it {how}. It is not started again.{last_lines(broker.log)}\n"
        f"tailrace: to start it by hand: tailrace serve --data-dir {seat.data_dir} "
        f"--kafka-port {seat.kafka_port} --peer-port {seat.peer_port}"
    )


def _stop(cluster: Cluster) -> None:
    say("tailrace: stopping all brokers")
    try:
        cluster.stop(*cluster.ids)
    except BrokerFailed as error:
        raise Failed(f"the cluster did not stop cleanly: {error}") from None
    say("tailrace: all brokers have stopped")
