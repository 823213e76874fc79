"""Run one broker in this process: event loop, logging, signals and the ready line.

The order matters: nothing is printed to standard output before clients can connect, and if a door cannot open its port,
the node is stopped, so that the next start finds a cleanly closed data directory. At a stop the client doors go first:
what their callers have asked for goes through the Kafka door.
"""

import gc
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.broker.certificates import uses_tls
from tailrace.broker.later_release import LaterRelease
from tailrace.broker.node import CannotStart, Node
from tailrace.broker.starting import Startup
from tailrace.cli.failure import Failed
from tailrace.cli.process import Reloading, Stop, at_eof, run_server, unless
from tailrace.doors.client_doors import CannotOpen, asked_for, check_can_open, make_doors, stop_doors
from tailrace.doors.door import CannotListen, ClientDoor, Door, open_doors
from tailrace.doors.kafka import KafkaDoor
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.addresses import Address
from tailrace.model.listeners import KAFKA_LISTENER, PEER_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import system_ports

if TYPE_CHECKING:
    from tailrace.doors.upstream import ClientHost

OBJECTS_PER_COLLECTION: Final = 10_000  # that are new since the last search for reference cycles
UNREADABLE_ADVICE: Final = (
    "\nRestore that file from a copy of the directory, or use another directory "
    "with --data-dir;\n`tailrace log dump` shows the records in the logs."
)
logger = logging.getLogger("tailrace.serve")


def run_broker(settings: Settings, *, until_eof: bool = False) -> int:
    if os.path.exists(settings.data_dir) and not os.path.isdir(settings.data_dir):
        raise Failed(
            f"cannot start: {settings.data_dir} is a file, not a directory.\nName a directory with --data-dir."
        )
    try:
        check_can_open(settings)
    except CannotOpen as error:
        raise Failed(f"cannot start: {error}") from None
    run_server(_serve(settings, until_eof), settings.log_level)
    return 0


async def _serve(settings: Settings, until_eof: bool) -> None:
    ports = system_ports()
    stop = Stop()
    ports.host.on_stop(stop.request)
    reloading = Reloading()
    if uses_tls(settings):
        ports.host.on_reload(reloading.request)
    if until_eof:
        at_eof(stop.request)
    startup = Startup(ports, settings)
    failed = startup.background.failed
    failed.add_done_callback(lambda _: stop.requested.set())
    try:
        node = await startup.run()
    except CannotStart as error:
        advice = UNREADABLE_ADVICE if isinstance(error.__cause__, Unreadable) else ""
        raise Failed(f"cannot start: {error}{advice}") from None
    try:
        kafka, (client_host, client_doors) = KafkaDoor(node), _client_doors(node, stop.request)
        is_open = await unless(stop.requested, _open(node, [kafka, *client_doors]))  # long: it waits for the cluster
        if is_open:
            _spare_the_collector()
            reloading.begin(node.certificates.reload)
            _announce_ready(node, settings)
            await stop.requested.wait()
            if client_host is not None:
                await stop_doors(client_host, client_doors)
            kafka.close()
    except (CannotOpen, CannotListen, CannotStart) as error:
        raise Failed(f"cannot start: {error}") from None
    finally:
        await node.stop()
    if failed.done():
        failure = failed.exception()
        if isinstance(failure, LaterRelease):
            raise Failed(f"stopped: {failure}.")
        raise Failed(f"the broker failed and stopped: {failure!r}. The log above has the details.")
    logger.info("stopped")


def _client_doors(node: Node, request_stop: Callable[[], None]) -> "tuple[ClientHost | None, list[ClientDoor]]":
    """The doors other than Kafka's; nothing is imported for them if none is asked for."""
    if not asked_for(node.settings):
        return None, []
    from tailrace.doors.in_broker import BrokerHost

    host = BrokerHost(node, request_stop)
    doors = make_doors(host)
    host.show(doors)
    return host, doors


def _spare_the_collector() -> None:
    """Requests make no reference cycles, so searching for them finds next to nothing: search rarely, and not among the
    objects that exist now, which stay until the end."""
    gc.freeze()
    gc.set_threshold(OBJECTS_PER_COLLECTION)


def _announce_ready(node: Node, settings: Settings) -> None:
    listeners = {**node.endpoints, PEER_LISTENER: Address(node.advertised_host, node.peer_port)}
    where = node.endpoints[KAFKA_LISTENER]
    logger.info("broker %d is up at %s, data in %s, fsync %s", node.broker_id, where, settings.data_dir, settings.fsync)
    print("ready " + " ".join(f"{name}={one}" for name, one in listeners.items()), flush=True)


async def _open(node: Node, doors: Sequence[Door]) -> bool:
    await open_doors(node, doors)
    return True
