"""`tailrace cluster up`: a cluster in the foreground, one process for each broker.

It starts the brokers, prints the ready line when the cluster is healthy, and then only watches: a broker that dies is
reported and not started again. Ctrl-C or SIGTERM asks all brokers to stop at the same time; a second one kills them.
Should this process itself be killed, its brokers see their standard input end, and stop.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import say
from tailrace.cli.serve.command import settings_from
from tailrace.doors.client_doors import CLIENT_DOORS, asked_for
from tailrace.local.broker import BrokerFailed, LocalBroker
from tailrace.local.cluster import LocalCluster, local_cluster
from tailrace.local.held_ports import is_free
from tailrace.local.places import PLACE_SETTINGS, PlaceError
from tailrace.local.process_log import last_lines
from tailrace.model.settings import SettingError, rows, variable_name, yaml_name

LOOK_AGAIN_S: Final = 0.2
SAME_REQUEST_S: Final = 1.0  # `timeout` sends a signal to the process and to its group: one request arrives twice


def run_cluster(brokers: int | None, data_dir: Path, base_port: int | None, given: Mapping[str, object]) -> None:
    """`given` are settings of the command line, which override the environment."""
    cluster = new_cluster(brokers, data_dir, base_port, _settings(given), echo=True)
    Stop(cluster)
    try:
        _run(cluster)
    except KeyboardInterrupt:
        _stop(cluster)
    except BrokerFailed as error:
        raise Failed(f"cannot start the cluster: {error}") from None
    finally:
        with suppress(BrokerFailed):  # an earlier failure is reported, not this one
            cluster.close()


def new_cluster(
    brokers: int | None, data_dir: Path | None, base_port: int | None, settings: dict[str, object], *, echo: bool
) -> LocalCluster[LocalBroker]:
    """A cluster that is not started yet. Wrong settings and ports in use are refused before any broker starts."""
    on_log = _print_log if echo else None
    try:
        cluster = local_cluster(brokers, data_dir=data_dir, base_port=base_port, on_log=on_log, **settings)
    except PlaceError as error:
        raise Misused(f"{error}.\nGive another --data-dir, or leave --brokers and --base-port out.") from None
    except SettingError as error:
        raise Misused(f"{error}.") from None
    except OSError as error:
        raise Failed(
            f"cannot use {data_dir}: {error.strerror or error}.\nGive another place with --data-dir."
        ) from None
    for place, broker in zip(cluster.places, cluster.brokers, strict=True):
        doors = [one.port(broker.settings) for one in asked_for(broker.settings)]
        for port in (place.kafka_port, place.peer_port, *doors):
            if not is_free(port):
                raise Failed(
                    f"cannot start: port {port} of broker {place.id} is in use.\n"
                    f"Is the cluster in {cluster.data_dir} up already? Else stop that program, or start a new cluster "
                    "with --data-dir and another --base-port."
                )
    return cluster


class Stop:
    """Handles SIGINT and SIGTERM: the first raises KeyboardInterrupt in the main thread, a later one kills all brokers.

    What arrives within `SAME_REQUEST_S` of the first counts as the same request.
    """

    def __init__(self, cluster: LocalCluster[LocalBroker]) -> None:
        self._is_asked = False
        self._cluster = cluster
        self._same_until = 0.0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._same_until = time.monotonic() + SAME_REQUEST_S
            raise KeyboardInterrupt
        if time.monotonic() > self._same_until:
            for broker in self._cluster.brokers:
                if broker.is_running:
                    os.kill(broker.pid, signal.SIGKILL)


def _settings(given: Mapping[str, object]) -> dict[str, object]:
    """What all brokers get: the settings of the environment, but for those of one broker's place; and those given."""
    settings_from({}, os.environ, given, "")  # refuses wrong names and values
    inherited = {name: os.environ.get(variable_name(name)) for name in rows() if name not in PLACE_SETTINGS}
    settings: dict[str, object] = {yaml_name(name): value for name, value in inherited.items() if value is not None}
    return settings | {name: value for name, value in given.items() if value is not None}


def _print_log(broker_id: int, line: str) -> None:
    print(f"broker {broker_id} | {line}", file=sys.stderr, flush=True)


def _run(cluster: LocalCluster[LocalBroker]) -> None:
    cluster.start()
    doors = {one.listener: cluster.endpoints(one.listener) for one in CLIENT_DOORS}
    shown = "".join(f" {listener}={addresses}" for listener, addresses in doors.items() if addresses)
    print(f"ready kafka={cluster.bootstrap}{shown}", flush=True)
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


def _report(cluster: LocalCluster[LocalBroker], broker_id: int, code: int) -> None:
    place, broker = cluster.places[broker_id - 1], cluster.broker(broker_id)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    say(
        f"tailrace: BROKER {broker_id} IS DOWN: it {how}. It is not started again.{last_lines(broker.log)}\n"
        f"tailrace: to start it by hand: tailrace serve --data-dir {place.data_dir} "
        f"--kafka-port {place.kafka_port} --peer-port {place.peer_port}"
    )


def _stop(cluster: LocalCluster[LocalBroker]) -> None:
    say("tailrace: stopping all brokers")
    try:
        cluster.stop(*cluster.ids)
    except BrokerFailed as error:
        raise Failed(f"the cluster did not stop cleanly: {error}") from None
    say("tailrace: all brokers have stopped")
