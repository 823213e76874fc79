"""Which web pages may not use a server: requests that a browser sends on behalf of a foreign page are refused.

A page of any site can let a browser send requests to a server on the same machine. Three headers, which pages cannot
forge, tell: `Host` names what the browser believes to talk to (a foreign name that resolves to 127.0.0.1 is DNS
rebinding); `Origin` and `Sec-Fetch-Site` name the page. Programs such as curl send neither of the last two.
"""

import re
from collections.abc import Mapping
from typing import Final

from tailrace.doors.http.errors import HttpError
from tailrace.model.frozen import frozen

HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::([0-9]{1,5}))?")
LOOPBACK_V4: Final = re.compile(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}")
LOOPBACK_NAMES: Final = ("localhost", "[::1]")


@frozen
class Origins:
    """The host names of a server; None: any, because it is meant to be reached from other machines by any name."""

    hosts: tuple[str, ...] | None = None

    def check(self, headers: Mapping[str, str], *, host_required: bool) -> None:
        """HttpError unless a request may come from there."""
        host = headers.get("host")
        if host is None:
            if host_required:
                raise HttpError(400, "the request has no Host header")
        else:
            self._check_host(host)
        if "origin" in headers or "sec-fetch-site" in headers:
            self._check_page(headers, host or "")

    def _check_host(self, host: str) -> None:
        found = HOST.fullmatch(host)
        if found is None:
            raise HttpError(400, "the Host header is not HOST or HOST:PORT")
        if self.hosts is not None and not self._is_ours(found[1].lower()):
            names = ", ".join((*LOOPBACK_NAMES, *self.hosts))
            raise HttpError(421, f"this server listens on loopback and answers only to the hosts {names}")

    def _is_ours(self, name: str) -> bool:
        assert self.hosts is not None
        return name in LOOPBACK_NAMES or name in self.hosts or LOOPBACK_V4.fullmatch(name) is not None

    def _check_page(self, headers: Mapping[str, str], host: str) -> None:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise HttpError(403, "a page of another site may not send requests here")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise HttpError(403, "a page of another origin may not send requests here")


def is_loopback(host: str) -> bool:
    bare = host.strip("[]").lower()
    return bare in ("localhost", "::1") or LOOPBACK_V4.fullmatch(bare) is not None


def origins_of(listening_on: str, advertised_host: str) -> Origins:
    """The allow-list of a server that listens on this address."""
    if not is_loopback(listening_on):
        return Origins()
    return Origins(hosts=tuple(dict.fromkeys((listening_on.lower(), advertised_host.lower()))))
