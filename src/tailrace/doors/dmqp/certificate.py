"""The certificate that the door makes for itself at the first start, if the settings name none.

Two files in the data directory: the private key with its certificate, which only the owner may read, and the
certificate alone, which clients take as their authority: they trust this server and no other. It is for the host names
of the broker and for this machine, and valid for ten years. If both files are removed, a new one is made at the
next start.
"""

import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tailrace.doors.client_doors import CannotOpen
from tailrace.ports import Disk
from tailrace.ports.disk import make_lasting_dir, replace_file

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName

KEY_FILE: Final = "dmqp-key.pem"
CERTIFICATE_FILE: Final = "dmqp-certificate.pem"
VALID_DAYS: Final = 3650
THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
NOT_NAMES: Final = ("", "0.0.0.0", "::")


async def own_certificate(disk: Disk, folder: str, hosts: Iterable[str], now_ms: int) -> str:
    """The path of the file with the key, which is made if it does not exist."""
    path = f"{folder}/{KEY_FILE}"
    if disk.exists(path):
        return path
    names = [name for name in dict.fromkeys((*hosts, *THIS_MACHINE)) if name not in NOT_NAMES]
    key, certificate = _make(names, now_ms)
    await make_lasting_dir(disk, folder)
    await replace_file(disk, f"{folder}/{CERTIFICATE_FILE}", certificate)
    fresh = disk.open_private(path + ".new")
    try:
        fresh.truncate(0)
        fresh.write(key + certificate, 0)
        await fresh.sync()
    finally:
        fresh.close()
    disk.rename(path + ".new", path)
    await disk.sync_dir(folder)
    return path


def _make(names: list[str], now_ms: int) -> tuple[bytes, bytes]:
    """A new private key and its certificate, in PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID
    except ImportError:
        raise CannotOpen(
            "making a certificate for the DMQP door needs the package cryptography: pip install 'tailrace[dmqp]'.\n"
            "Or name a certificate with ssl.keystore.location, or use dmqp.security.protocol=PLAINTEXT."
        ) from None
    from datetime import UTC, datetime, timedelta

    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Tailrace DMQP")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # for clients whose clocks are slow
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return secret, certificate.public_bytes(encoding)


def _general_name(name: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
