"""`tailrace.ports.net` and `tailrace.ports.tls`: real TLS over loopback, on both event loops."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tailrace.ports import BadCertificates, Listener, Tls, TlsFiles
from tailrace.ports import net as net_module
from tailrace.ports.net import SystemNet
from tests.certificates import Authority

HOST = "127.0.0.1"
LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)


class Echo(asyncio.BufferedProtocol):
    """Sends back what it receives."""

    def __init__(self) -> None:
        self._buffer = bytearray(64 * 1024)
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)  # asyncio's TLS would read the second record into a copy of a bytearray

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self._buffer[:nbytes]))


class Caller(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: Any = None
        self._received = bytearray()
        self._more = asyncio.Event()
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._more.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self._more.set()

    async def echoed(self, data: bytes) -> bool:
        """Send bytes and wait until as many are back, or the connection is lost."""
        self.transport.write(data)
        async with asyncio.timeout(10):
            while len(self._received) < len(data) and not self.lost.is_set():
                self._more.clear()
                await self._more.wait()
        got, self._received = bytes(self._received), bytearray()
        return got == data


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "stranger")


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    def run(work: Awaitable[None]) -> None:
        async def within() -> None:
            async with asyncio.timeout(30):
                await work

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(within())

    return run


async def listen(authority: Authority, **files: Any) -> tuple[Listener, Tls]:
    net = SystemNet()
    tls = net.load_tls(TlsFiles(**{"keystore": authority.keystore(), "truststore": authority.truststore} | files))
    return await net.listen(Echo, HOST, 0, tls), tls


async def call(listener: Listener, host: str = HOST, **files: Any) -> Caller:
    net = SystemNet()
    return await net.connect(Caller, host, listener.port, net.load_tls(TlsFiles(**files)))


Run = Callable[[Awaitable[None]], None]


def test_bytes_go_both_ways(authority: Authority, run: Run) -> None:
    async def check() -> None:
        listener, _ = await listen(authority)
        caller = await call(listener, truststore=authority.truststore)
        assert caller.transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        for size in (1, 1000, 3_000_000):
            assert await caller.echoed(os.urandom(size))
        listener.close()

    run(check())


def test_a_listener_on_all_addresses_of_a_name_has_one_port(authority: Authority, run: Run) -> None:
    async def check() -> None:
        net = SystemNet()
        tls = net.load_tls(TlsFiles(keystore=authority.keystore()))
        listener = await net.listen(Echo, "localhost", 0, tls)
        caller = await call(listener, "localhost", truststore=authority.truststore)
        assert await caller.echoed(b"x")
        with pytest.raises(OSError, match="in use"):
            await net.listen(Echo, "localhost", listener.port, tls)
        listener.close()

    run(check())


def test_a_client_checks_the_listener(authority: Authority, stranger: Authority, run: Run) -> None:
    async def check() -> None:
        listener, _ = await listen(authority)
        with pytest.raises(ConnectionError, match=f"no TLS with {HOST}:.*unable to get local issuer"):
            await call(listener, truststore=stranger.truststore)
        named, _ = await listen(authority, keystore=authority.keystore("other", "other.example"))
        with pytest.raises(ConnectionError, match=f"IP address mismatch.*{HOST}"):
            await call(named, truststore=authority.truststore)
        unchecked = await call(named, truststore=authority.truststore, checks_hostname=False)
        assert await unchecked.echoed(b"x")

    run(check())


def test_a_listener_checks_clients(authority: Authority, stranger: Authority, run: Run) -> None:
    async def accepted(listener: Listener, **files: Any) -> bool:
        try:
            return await (await call(listener, truststore=authority.truststore, **files)).echoed(b"x")
        except OSError:  # with TLS 1.3 a client learns only after the handshake that its certificate was refused
            return False

    async def check() -> None:
        own, foreign = authority.keystore("client"), stranger.keystore("foreign")
        required, _ = await listen(authority, client_auth="required")
        assert await accepted(required, keystore=own)
        assert not await accepted(required)
        assert not await accepted(required, keystore=foreign)
        requested, _ = await listen(authority, client_auth="requested")
        assert await accepted(requested)
        assert not await accepted(requested, keystore=foreign)

    run(check())


def test_files_that_cannot_be_used_are_refused_by_name(authority: Authority, tmp_path: Path) -> None:
    good, other = Path(authority.keystore()).read_text(), Path(authority.keystore("other")).read_text()
    at = good.index("-----BEGIN CERTIFICATE")
    contents = {
        "mismatch": (other[: other.index("-----BEGIN CERT")] + good[at:], "key does not belong to the certificate"),
        "only-key": (good[:at], "must have a private key"),
        "only-certificate": (good[at:], "must have a private key"),
        "empty": ("", "must have a private key"),
        "garbage": ("\x00\xff" * 100, "must have a private key"),
        "cut": (good[:-200], "must have a private key"),
        "other-label": (good.replace(" CERTIFICATE-", " X509 CERTIFICATE-"), "TLS is not possible with it"),
    }
    for name, (content, problem) in contents.items():
        path = tmp_path / f"{name}.pem"
        path.write_text(content)
        with pytest.raises(BadCertificates, match=rf"{path}: .*({problem})"):
            SystemNet().load_tls(TlsFiles(keystore=str(path)))
    with pytest.raises(BadCertificates, match=r"expired.pem: certificate has expired"):
        SystemNet().load_tls(TlsFiles(keystore=authority.expired()))
    with pytest.raises(BadCertificates, match=r"absent.pem: No such file"):
        SystemNet().load_tls(TlsFiles(keystore=str(tmp_path / "absent.pem")))
    with pytest.raises(BadCertificates, match=r"absent.pem: No such file"):
        SystemNet().load_tls(TlsFiles(keystore=authority.keystore(), truststore=str(tmp_path / "absent.pem")))
    with pytest.raises(BadCertificates, match=r"empty.pem: .*certificates of authorities"):
        SystemNet().load_tls(TlsFiles(keystore=authority.keystore(), truststore=str(tmp_path / "empty.pem")))


def test_an_encrypted_key_needs_its_password(authority: Authority) -> None:
    path = authority.keystore(password=b"secret")
    SystemNet().load_tls(TlsFiles(keystore=path, key_password="secret"))
    for password in ("", "wrong"):
        with pytest.raises(BadCertificates, match=r"broker.pem: .*ssl.key.password"):
            SystemNet().load_tls(TlsFiles(keystore=path, key_password=password))
    assert "secret" not in repr(TlsFiles(keystore=path, key_password="secret"))


def _cut(path: str) -> None:
    Path(path).write_text(Path(path).read_text()[:300])


def test_new_files_are_for_new_connections(authority: Authority, stranger: Authority, run: Run) -> None:
    def serial(caller: Caller) -> object:
        return caller.transport.get_extra_info("peercert")["serialNumber"]

    async def check() -> None:
        listener, tls = await listen(authority)
        before = await call(listener, truststore=authority.truststore)
        assert not tls.has_changed()
        authority.keystore()
        assert tls.has_changed()
        tls.reload()
        assert not tls.has_changed()
        after = await call(listener, truststore=authority.truststore)
        assert serial(before) != serial(after)
        assert await before.echoed(b"still here")

        _cut(authority.keystore())
        with pytest.raises(BadCertificates, match=r"broker\.pem"):
            tls.reload()
        assert not tls.has_changed()
        again = await call(listener, truststore=authority.truststore)
        assert serial(again) == serial(after)
        assert await again.echoed(b"x")

    run(check())


def test_a_client_without_tls_is_closed_and_logged(
    authority: Authority, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        listener, _ = await listen(authority)
        plain = await SystemNet().connect(Caller, HOST, listener.port)
        plain.transport.write(b"\x00\x00\x00\x10\x00\x12\x00\x00\x00\x00\x00\x00\x00\x02aa\x00")
        async with asyncio.timeout(10):
            await plain.lost.wait()
        assert await (await call(listener, truststore=authority.truststore)).echoed(b"x")

    with caplog.at_level(logging.WARNING):
        run(check())
    assert "the other side does not use TLS" in caplog.text


def test_silent_clients_make_room_for_others(
    authority: Authority, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(net_module, "HANDSHAKES_MAX", 4)
    monkeypatch.setattr(net_module, "HANDSHAKE_SLOW_S", 0.05)

    async def check() -> None:
        listener, _ = await listen(authority)
        with ExitStack() as silent:
            for _ in range(20):
                silent.enter_context(socket.create_connection((HOST, listener.port)))
            async with asyncio.timeout(5):  # of 10 s that each silent client has when nobody waits
                caller = await call(listener, truststore=authority.truststore)
                assert await caller.echoed(b"x")
            assert len(listener._handshakes) <= 4  # type: ignore[attr-defined]
        listener.close()

    with caplog.at_level(logging.WARNING):
        run(check())
    assert "it took too long while others waited" in caplog.text
    assert len(caplog.records) == 1, "failed handshakes must not flood the log"


def test_a_closed_listener_ends_handshakes(authority: Authority, run: Run) -> None:
    async def check() -> None:
        listener, _ = await listen(authority)
        silent = await SystemNet().connect(Caller, HOST, listener.port)
        while not listener._handshakes:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0)
        listener.close()
        async with asyncio.timeout(5):
            await silent.lost.wait()
        with pytest.raises(OSError, match=r"refused|Connect"):
            await SystemNet().connect(Caller, HOST, listener.port)

    run(check())
