"""Where a caller connects from, as gRPC tells: `ipv4:127.0.0.1:5000`, `ipv6:%5B::1%5D:5000`, `unix:…`.

Whether a caller is on this machine is decided by its own address, never by the address at which it was accepted: a
listener on loopback may stand behind a forwarder, and one on all addresses has local callers, too. An IPv4 address
within IPv6 counts as what it contains.
"""

import ipaddress
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

PEERS_KEPT: Final = 1_000  # connections make many calls; most have the same few addresses


@lru_cache(maxsize=PEERS_KEPT)
def peer_host(peer: str) -> str:
    """The host of a peer; empty if gRPC names none that is an IP address."""
    kind, _, rest = unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    host = rest.rpartition(":")[0].removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)


def is_local(host: str) -> bool:
    """Whether a peer's host is this machine's loopback."""
    return bool(host) and ipaddress.ip_address(host).is_loopback
