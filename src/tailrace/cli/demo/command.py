"""`tailrace demo`: three real brokers, one of them killed under load, nothing lost; and how to connect to them."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace import __version__
from tailrace.cli.client.client_config import DEFAULT_BOOTSTRAP, Access
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, admin, answer, asking, check_installed
from tailrace.cli.cluster.commands import BasePort
from tailrace.cli.demo.load import Sending, read_back
from tailrace.cli.failure import Failed
from tailrace.cli.output import print_table
from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.local.broker import BrokerFailed, LocalBroker
from tailrace.local.held_ports import is_free
from tailrace.local.process_log import last_lines
from tailrace.model.settings import yaml_name

if TYPE_CHECKING:
    from tailrace.local.cluster import LocalCluster

TOPIC: Final = "demo"
LOOK_AGAIN_S: Final = 0.2
BROKERS: Final = 3
# Of broker 1, by listener; those of DMQP and HTTP would overlap at the ports that one broker has, 8000 and 8001.
FIRST_PORTS: Final = MappingProxyType({"http": 8001, "grpc": 50051, "dmqp": 8010})

HOW_TO_CONNECT: Final = """
Connect any Kafka client to {first}. In Python (pip install confluent-kafka):

    from confluent_kafka import Producer
    producer = Producer({{"bootstrap.servers": "{first}"}})
    producer.produce("demo", key="ann", value="4 more apples")
    producer.flush()

On the command line:

    {program} cluster status{flag}
    {program} consume demo --from-beginning --max 3{flag}
    echo "hello" | {program} produce demo{flag}
    kcat -b {first} -t demo -C -e
"""


def demo(
    stay: Annotated[bool, typer.Option("--stay", help="Keep the brokers up, with their data, until Ctrl-C.")] = False,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where the data lives, with --stay.")
    ] = Path("tailrace-cluster"),
    base_port: BasePort = None,
) -> None:
    """Start three brokers, kill one under load, show that nothing is lost and how to connect.

    Without --stay the brokers and their data are gone afterwards.

    \b
    Examples:
      tailrace demo
      tailrace demo --stay
    """
    from tailrace.cli.cluster.up import new_cluster

    check_installed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends it cleanly, as Ctrl-C does
    cluster = new_cluster(BROKERS, data_dir if stay else None, base_port, _door_settings(base_port), echo=False)
    start = time.perf_counter()
    try:
        with cluster:
            took = time.perf_counter() - start
            print(f"Tailrace {__version__}: three brokers are up, {took:.1f} s after we asked for them:")
            print(f"  {cluster.bootstrap}")
            _show_doors(cluster)
            _show(cluster)
            if stay:
                _stay(cluster, data_dir)
    except BrokerFailed as error:
        raise Failed(str(error)) from None
    print("The brokers have stopped" + ("." if stay else "; their data is gone. `tailrace demo --stay` keeps both."))


def _door_settings(base_port: int | None) -> dict[str, object]:
    """All doors whose packages are installed: at the ports that their users know where these are free, else at any."""
    wanted = {one.setting: FIRST_PORTS[one.listener] for one in CLIENT_DOORS if one.is_installed}
    known = base_port is None and all(is_free(first + one) for first in wanted.values() for one in range(BROKERS))
    return {yaml_name(setting): first if known else 0 for setting, first in wanted.items()}


def _show_doors(cluster: "LocalCluster[LocalBroker]") -> None:
    listeners = ["kafka", *(one.listener for one in CLIENT_DOORS if cluster.endpoints(one.listener))]
    titles = {"kafka": "Kafka", **{one.listener: one.title for one in CLIENT_DOORS}}
    rows = [[str(one), *(cluster.broker(one).endpoints[door] for door in listeners)] for one in cluster.ids]
    print_table(["broker", *(titles[one] for one in listeners)], rows)


def _show(cluster: "LocalCluster[LocalBroker]") -> None:
    access = Access(bootstrap=cluster.bootstrap)
    _create_topic(access)
    cluster.wait_until_healthy()
    leader = cluster.leader_of(TOPIC, 0)
    print(f"  Topic {TOPIC!r} has three replicas; broker {leader} leads them.")
    sent = Sending(access, TOPIC).send(lambda: cluster.kill(leader))
    print(f"  Sent {len(sent.confirmed):,} messages, and killed broker {leader} (SIGKILL) half way.")
    took_over = cluster.leader_of(TOPIC, 0)
    print(f"  Broker {took_over} took over; the producer waited {sent.longest_wait_s:.2f} s at most.")
    _compare(sent.confirmed, read_back(access, TOPIC, sent.first_offset))
    cluster.restart(leader)
    cluster.wait_until_healthy()
    print(f"  Broker {leader} is back, and has caught up.")
    first = cluster.places[0].address
    flag = "" if first == DEFAULT_BOOTSTRAP else f" --bootstrap {first}"
    print(HOW_TO_CONNECT.format(first=first, flag=flag, program=_program()))


def _compare(confirmed: list[bytes], read: list[bytes]) -> None:
    missing = len(confirmed) - len(set(confirmed) & set(read))
    if missing:
        raise Failed(f"{missing} messages that were confirmed are not there. This is a bug of Tailrace.")
    if read != confirmed:
        raise Failed("messages came back twice or in another order. This is a bug of Tailrace.")
    print(f"  Read back: all {len(read):,} confirmed messages are there, in order, none twice.")


def _create_topic(access: Access) -> None:
    client = admin(access)
    from confluent_kafka.admin import NewTopic

    with asking(access, "create topic"):
        made = client.create_topics([NewTopic(TOPIC, 1, 3)], request_timeout=ANSWER_TIMEOUT_S)
    error = made[TOPIC].exception(2 * ANSWER_TIMEOUT_S)
    if error is not None and error.args[0].name() != "TOPIC_ALREADY_EXISTS":
        answer(made[TOPIC], access, f"create topic {TOPIC}")


def _stay(cluster: "LocalCluster[LocalBroker]", data_dir: Path) -> None:
    print(f"They stay up, with their data in {data_dir}, until Ctrl-C.", flush=True)
    try:
        while True:
            for one in cluster.ids:
                if not cluster.broker(one).is_running:
                    raise Failed(f"broker {one} ended by itself.{last_lines(cluster.broker(one).log)}")
            time.sleep(LOOK_AGAIN_S)
    except KeyboardInterrupt:
        return


def _program() -> str:
    """What to type to run this program: its name if the shell finds it, else the path it was started with."""
    started_as = sys.argv[0]
    if os.path.basename(started_as) == "__main__.py":
        return f"{sys.executable} -m tailrace"
    found = shutil.which("tailrace")
    return "tailrace" if found is not None and os.path.realpath(found) == os.path.realpath(started_as) else started_as
