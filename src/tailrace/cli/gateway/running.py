"""Run a gateway in this process: reach the upstream, open the doors, and watch both until a stop is requested."""

import logging
from typing import Final

from tailrace.broker.certificates import uses_tls
from tailrace.cli.client.client_config import Access
from tailrace.cli.failure import Failed
from tailrace.cli.process import Reloading, Stop, at_eof, run_server, unless
from tailrace.client.faults import ClientError, WrongCluster
from tailrace.doors.client_doors import CannotOpen, make_doors, stop_doors
from tailrace.doors.door import CannotListen, open_doors
from tailrace.doors.in_gateway import LISTENERS, GatewayHost
from tailrace.model.addresses import parse_addresses
from tailrace.model.settings import Settings
from tailrace.ports import BadCertificates, system_ports
from tailrace.ports.tls import ClientTls

logger: Final = logging.getLogger("tailrace.gateway")


def run_gateway(settings: Settings, access: Access, *, until_eof: bool = False) -> int:
    run_server(_serve(settings, access, until_eof), settings.log_level)
    return 0


async def _serve(settings: Settings, access: Access, until_eof: bool) -> None:
    ports = system_ports()
    stop = Stop()
    ports.host.on_stop(stop.request)
    if until_eof:
        at_eof(stop.request)
    reloading = Reloading()
    if uses_tls(settings, LISTENERS):
        ports.host.on_reload(reloading.request)
    tls = None if access.tls is None else ClientTls(access.tls)
    try:
        host = GatewayHost(ports, settings, parse_addresses(access.bootstrap), tls=tls, sasl=access.security.sasl)
    except BadCertificates as error:
        raise Failed(f"cannot start: {error}") from None
    reloading.begin(host.certificates.reload)
    host.failed.add_done_callback(lambda _: stop.requested.set())
    try:
        if await unless(stop.requested, _reach(host, access)):
            await _run(host, stop)
    finally:
        await host.upstream.close()
        await host.close()
        ports.offload.close()
    if host.failed.done():
        raise Failed(_why(host.failed.exception(), access))
    logger.info("stopped")


async def _reach(host: GatewayHost, access: Access) -> bool:
    try:
        cluster_id = await host.reach()
        has_share_groups = await host.has_share_groups()
    except (ClientError, OSError) as error:
        raise Failed(f"cannot start: {error}.\nIs --upstream {access} right? {access.advice}") from None
    logger.info("the upstream is cluster %s at %s", cluster_id, access)
    if not has_share_groups:
        logger.warning(
            "the upstream has no share groups (Apache Kafka has them from 4.2 on): taking single messages will fail"
        )
    return True


async def _run(host: GatewayHost, stop: Stop) -> None:
    doors = make_doors(host)
    try:
        await open_doors(host, doors)
    except (CannotOpen, CannotListen) as error:
        raise Failed(f"cannot start: {error}") from None
    host.spawn(host.watch())
    host.spawn(host.certificates.watch())
    print("ready " + " ".join(f"{name}={one}" for name, one in host.endpoints.items()), flush=True)
    await stop.requested.wait()
    await stop_doors(host, doors)


def _why(failure: BaseException | None, access: Access) -> str:
    if isinstance(failure, WrongCluster):
        return (
            f"stopped: another cluster is at {access} now: {failure}.\n"
            "It does not have the old one's registrations and positions. To serve it, start the gateway again."
        )
    logger.critical("the gateway stops: a background task failed", exc_info=failure)
    return f"the gateway failed and stopped: {failure!r}. The log above has the details."
