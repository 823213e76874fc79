"""Certificates for tests, made with the program `openssl`; and TLS in front of a broker that has none."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PIECE_BYTES = 65536
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Signed by itself, so that trusting it is trusting nobody else."""

    certificate: Path
    both: Path  # with its private key, as Kafka wants it in a keystore

    @property
    def text(self) -> str:
        return self.certificate.read_text()


def make_certificate(folder: Path, name: str, alternatives: str) -> Certificate:
    """For the names in `alternatives`, such as `DNS:localhost,IP:127.0.0.1`."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made with openssl, which is not on the PATH")
    key, certificate, both = (folder / f"{name}.{kind}" for kind in ("key", "pem", "both.pem"))
    words = ["-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={name}"]
    command = ["openssl", "req", "-x509", *CURVE, *words, "-addext", f"subjectAltName={alternatives}"]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return Certificate(certificate=certificate, both=both)


@contextmanager
def tls_in_front(host: str, port: int, behind: tuple[str, int], context: ssl.SSLContext) -> Iterator[None]:
    """Speak TLS at an address, and pass on what is said to another one."""
    loop = asyncio.new_event_loop()
    try:
        listening = asyncio.start_server(
            lambda reader, writer: _pass_on(reader, writer, behind), host, port, ssl=context
        )
        server = loop.run_until_complete(listening)
    except OSError as error:
        loop.close()
        pytest.skip(f"{host} is no address of this machine: {error}")
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in others:
        connection.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, behind: tuple[str, int]) -> None:
    other_reader, other_writer = await asyncio.open_connection(*behind)
    await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()
