"""The HTTP door: one listener with all APIs of the door, in a broker's process or in a gateway's."""

from typing import Final

from tailrace.doors.door import CannotListen, DoorCounters
from tailrace.doors.http.origins import origins_of
from tailrace.doors.http.queue_api.api import QueueApi
from tailrace.doors.http.rest.mounting import rest_api
from tailrace.doors.http.routes import Api, Router
from tailrace.doors.http.server import HttpOptions, HttpServer
from tailrace.doors.upstream import ClientHost
from tailrace.model.addresses import Address
from tailrace.model.listeners import HTTP_LISTENER


class HttpDoor:
    listener_name: Final = HTTP_LISTENER

    def __init__(self, host: ClientHost) -> None:
        self._host = host
        self._queue = QueueApi(host)
        settings = host.settings
        options = HttpOptions(
            host=settings.host,
            port=settings.http_port,
            origins=origins_of(settings.host, host.advertised_host),
            connections_max=settings.max_connections,
            name=self.listener_name,
        )
        self._server = HttpServer(host.net(self.listener_name), host.ports.clock, Router(self._apis()), options)

    def _apis(self) -> list[Api]:
        return [self._queue.api(), rest_api(self._host.upstream, self._host.ports)]

    @property
    def counters(self) -> DoorCounters:
        return self._server.counters

    @property
    def endpoint(self) -> Address:
        return Address(self._host.advertised_host, self._server.port)

    async def listen(self) -> None:
        try:
            await self._server.listen()
        except OSError as error:
            options = self._server.options
            raise CannotListen(self.listener_name, options.host, options.port, "--http-port", error) from None
        self._host.spawn(self._server.sweep())

    def open(self) -> None:
        self._server.open()
        self._host.spawn(self._queue.health.run())

    def close(self) -> None:
        self._server.close()

    async def stop(self, grace_s: float) -> None:
        await self._server.stop(grace_s)
