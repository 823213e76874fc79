"""The door's own certificate: made once, the key readable for its owner alone, and good for real TLS clients."""

import asyncio
import ssl
import stat
from pathlib import Path

import pytest

from tailrace.doors.client_doors import CannotOpen
from tailrace.doors.dmqp.certificate import CERTIFICATE_FILE, KEY_FILE
from tailrace.doors.dmqp.codec import Method, Status
from tests.unit.doors.dmqp.served import Served, serving, with_door


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / CERTIFICATE_FILE))


def folder_of(served: Served) -> Path:
    return Path(served.node.settings.data_dir)


@with_door(dmqp_security_protocol="SSL")
async def test_a_client_that_trusts_the_certificate_is_served(served: Served) -> None:
    for name in ("127.0.0.1", "localhost"):
        client = await served.client(ssl=trusting(folder_of(served)), server_hostname=name)
        await client.push(b"secret")
        assert await client.pop() == b"secret"
        assert client.writer.get_extra_info("cipher")[1] == "TLSv1.3"


@with_door(dmqp_security_protocol="SSL")
async def test_a_client_that_does_not_trust_it_is_not(served: Served) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await served.client(ssl=ssl.create_default_context())


@with_door(dmqp_security_protocol="SSL")
async def test_a_client_without_tls_is_closed_and_nobody_else_notices(served: Served) -> None:
    good = await served.client(ssl=trusting(folder_of(served)))
    plain = await served.client()
    plain.send(Method.POP)
    assert await asyncio.wait_for(plain.reader.read(), 20) is not None
    assert (await good.call(Method.POP)).status is Status.ENODATA


@with_door(dmqp_security_protocol="SSL")
async def test_only_the_owner_can_read_the_key(served: Served) -> None:
    folder = folder_of(served)
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    assert "PRIVATE KEY" in (folder / KEY_FILE).read_text()
    assert "PRIVATE KEY" not in (folder / CERTIFICATE_FILE).read_text()
    assert not list(folder.glob("dmqp-*.new"))


def test_the_certificate_stays_the_same_after_a_restart(tmp_path: Path) -> None:
    async def certificate() -> str:
        async with serving(tmp_path, dmqp_security_protocol="SSL") as served:
            client = await served.client(ssl=trusting(tmp_path))
            assert (await client.call(Method.POP)).status is Status.ENODATA
            return (tmp_path / KEY_FILE).read_text()

    assert asyncio.run(certificate()) == asyncio.run(certificate())


def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")

    async def start() -> None:
        async with serving(tmp_path / "data", dmqp_security_protocol="SSL", ssl_keystore_location=str(bad)):
            pass

    with pytest.raises(CannotOpen, match=r"bad\.pem"):
        asyncio.run(start())
