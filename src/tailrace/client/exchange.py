"""The requests and responses of one connection, without the connection.

A broker answers in the order of the requests, so those without a response are a queue. Each entry carries a token of
the driver's, such as a future, which comes back with the response. What cannot be a response raises `WireError`: the
order is lost then, and the connection must be closed.
"""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tailrace.client.faults import Unsupported
from tailrace.ports.disk import Buffer
from tailrace.wire.compile import decode_whole, encode_into, is_flexible
from tailrace.wire.framing import LENGTH_BYTES, LENGTH_LAYOUT
from tailrace.wire.headers import API_VERSIONS_KEY, read_response_header, request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

FIRST_REQUEST: Final = ApiVersionsRequest()
FIRST_VERSION: Final = 0  # every broker answers ApiVersions in version 0
NO_CAPS: Final[Mapping[int, int]] = MappingProxyType({})
CORRELATION_ID_MAX: Final = 2**31 - 1


class Pending(NamedTuple):
    """A request that was sent and has no response yet."""

    correlation_id: int
    api_key: int
    version: int
    token: Any


class Exchange:
    def __init__(self, broker: str, client_id: str, caps: Mapping[int, int] = NO_CAPS) -> None:
        """`broker` is its address, for messages; `caps` are, by API key, the newest versions that the caller wants."""
        self._broker = broker
        self._client_id = client_id
        self._caps = caps
        self._offered: dict[int, tuple[int, int]] = {API_VERSIONS_KEY: (FIRST_VERSION, FIRST_VERSION)}
        self._pending: deque[Pending] = deque()
        self._correlation_id = 0

    def __len__(self) -> int:
        """How many requests have no response yet."""
        return len(self._pending)

    # Versions

    def learn(self, offered: ApiVersionsResponse) -> None:
        """Take the versions that the broker offers."""
        self._offered = {one.api_key: (one.min_version, one.max_version) for one in offered.api_keys}

    def offers(self, api_key: int) -> bool:
        return api_key in self._offered

    def version(self, api_key: int) -> int:
        """The newest version that both sides have; Unsupported if there is none."""
        name, ours = MESSAGES[api_key].name, MESSAGES[api_key].versions
        if api_key not in self._offered:
            raise Unsupported(f"{self._broker} does not support {name}")
        first, last = self._offered[api_key]
        version = min(last, ours.last, self._caps.get(api_key, ours.last))
        if version < max(first, ours.first):
            raise Unsupported(f"{self._broker} supports {name} {first} to {last}, this client {ours}")
        return version

    # Requests and responses

    def request(self, request: object, token: Any = None, version: int | None = None) -> bytearray:
        """The frame to send; from now on its response is awaited. Without a version, the newest common one is used."""
        api_key = declaration(type(request)).number
        if version is None:
            version = self.version(api_key)
        number = self._correlation_id + 1
        frame = bytearray(LENGTH_BYTES)
        frame += request_header(api_key, version, number, self._client_id, is_flexible(type(request), version))
        try:
            encode_into(frame, request, version)
        except WireError as error:  # the version that the broker has is too old for what the request says
            name = MESSAGES[api_key].name
            raise Unsupported(f"{self._broker} supports {name} only up to version {version}: {error}") from None
        LENGTH_LAYOUT.pack_into(frame, 0, len(frame) - LENGTH_BYTES)
        self._correlation_id = number if number < CORRELATION_ID_MAX else 0
        self._pending.append(Pending(number, api_key, version, token))
        return frame

    def response(self, frame: Buffer) -> tuple[Any, Any]:
        """The token of the oldest request, and its response. Records in it are slices of the frame."""
        if not self._pending:
            raise WireError("a response came without a request")
        pending = self._pending[0]
        response = MESSAGES[pending.api_key].response
        found, at = read_response_header(frame, 0, pending.api_key, is_flexible(response, pending.version))
        if found != pending.correlation_id:
            raise WireError(f"the response has correlation id {found}, expected {pending.correlation_id}")
        decoded: Any = decode_whole(response, pending.version, frame, at)
        self._pending.popleft()
        return pending.token, decoded

    def abandon(self) -> list[Any]:
        """The tokens of all requests without a response; none is awaited any more."""
        tokens = [one.token for one in self._pending]
        self._pending.clear()
        return tokens
