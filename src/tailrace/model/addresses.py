"""Addresses as text: HOST:PORT, several separated by commas; an IPv6 host is in brackets."""

import re
from typing import Final, NamedTuple

PORT_MAX: Final = 65_535
ONE_ADDRESS: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([^\s\[\]:,/]+)):([0-9]{1,5})")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses in order; none for an empty text. ValueError names the part that is not an address."""
    if not text.strip():
        return ()
    return tuple(_parse_address(one.strip()) for one in text.split(","))


def _parse_address(text: str) -> Address:
    found = ONE_ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[3]) <= PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return Address(found[1] or found[2], int(found[3]))


def are_addresses(text: str) -> bool:
    try:
        parse_addresses(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can connect to this host: a name other than localhost may be anything."""
    from ipaddress import ip_address  # only where somebody asks

    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
