"""The asyncio calls that a simulated loop refuses: all that need real sockets, threads, processes or signals.

A call that slipped through would make a run depend on the operating system, and one seed would no longer mean one
history. So each of them raises `NotSimulated` and names itself.
"""

import asyncio
from typing import Any

from tailrace.testing.simulation.failures import NotSimulated


def _refuse(name: str) -> Any:
    def refuse(self: asyncio.AbstractEventLoop, *args: object, **kwargs: object) -> object:
        raise NotSimulated(f"loop.{name} is not simulated; use tailrace.ports instead")

    return refuse


class LoopWithoutRealIO(asyncio.AbstractEventLoop):
    run_forever: Any = _refuse("run_forever")
    shutdown_asyncgens: Any = _refuse("shutdown_asyncgens")
    shutdown_default_executor: Any = _refuse("shutdown_default_executor")
    run_in_executor: Any = _refuse("run_in_executor")
    set_default_executor: Any = _refuse("set_default_executor")
    getaddrinfo: Any = _refuse("getaddrinfo")
    getnameinfo: Any = _refuse("getnameinfo")
    add_signal_handler: Any = _refuse("add_signal_handler")
    remove_signal_handler: Any = _refuse("remove_signal_handler")
    add_reader: Any = _refuse("add_reader")
    remove_reader: Any = _refuse("remove_reader")
    add_writer: Any = _refuse("add_writer")
    remove_writer: Any = _refuse("remove_writer")
    create_server: Any = _refuse("create_server")
    create_connection: Any = _refuse("create_connection")
    create_unix_server: Any = _refuse("create_unix_server")
    create_unix_connection: Any = _refuse("create_unix_connection")
    create_datagram_endpoint: Any = _refuse("create_datagram_endpoint")
    connect_accepted_socket: Any = _refuse("connect_accepted_socket")
    start_tls: Any = _refuse("start_tls")
    sendfile: Any = _refuse("sendfile")
    sock_recv: Any = _refuse("sock_recv")
    sock_recv_into: Any = _refuse("sock_recv_into")
    sock_recvfrom: Any = _refuse("sock_recvfrom")
    sock_recvfrom_into: Any = _refuse("sock_recvfrom_into")
    sock_sendto: Any = _refuse("sock_sendto")
    sock_sendall: Any = _refuse("sock_sendall")
    sock_connect: Any = _refuse("sock_connect")
    sock_accept: Any = _refuse("sock_accept")
    sock_sendfile: Any = _refuse("sock_sendfile")
    connect_read_pipe: Any = _refuse("connect_read_pipe")
    connect_write_pipe: Any = _refuse("connect_write_pipe")
    subprocess_exec: Any = _refuse("subprocess_exec")
    subprocess_shell: Any = _refuse("subprocess_shell")
    set_task_factory: Any = _refuse("set_task_factory")
    get_task_factory: Any = _refuse("get_task_factory")
    set_debug: Any = _refuse("set_debug")
