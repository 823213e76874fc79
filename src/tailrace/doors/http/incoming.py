"""The request that is being received: its parts as the parser reports them, with all bounds.

httptools has no bound of its own: it keeps a header in memory until it ends, however long it is. So everything is
counted here: the head's bytes and headers, the body against the limit of its route (also when it comes in chunks), and
what a chunked body has beside its content (chunk sizes, extensions, trailers). What is refused is a `Problem`; what
follows on the connection cannot be trusted after most of them, so `closes` says whether it has to end. Where only the
request is wrong (an unknown path, a foreign origin), its body is read and dropped, and the connection goes on.
"""

from typing import Final

from tailrace.doors.http.errors import HttpError, Problem
from tailrace.doors.http.messages import read_pairs
from tailrace.doors.http.origins import Origins
from tailrace.doors.http.routes import Match, Router, decoded
from tailrace.model.limits import HTTP_BODY_MAX_BYTES, HTTP_HEAD_MAX_BYTES, HTTP_HEADERS_MAX

ONCE: Final = ("host", "content-length", "content-type", "content-encoding", "transfer-encoding", "origin", "expect")
VERSIONS: Final = ("1.0", "1.1")
CHUNK_FRAME_MAX_BYTES: Final = 8  # around a chunk of one byte: the worst that clients do
SEPARATORS_BYTES: Final = 4  # around a header: its colon, space and line end


class Incoming:
    """One request, from its first byte to its last."""

    __slots__ = (
        "_body",
        "_body_limit",
        "_router",
        "body_bytes",
        "closes",
        "expects_continue",
        "has_head",
        "head_bytes",
        "headers",
        "keeps_alive",
        "match",
        "method",
        "path",
        "problem",
        "query",
        "raw_bytes",
        "target",
        "version",
    )

    def __init__(self, router: Router) -> None:
        self._router = router
        self._body: bytes | bytearray = b""
        self._body_limit = HTTP_BODY_MAX_BYTES
        self.raw_bytes = 0  # that were received since the request before was complete
        self.head_bytes = 0
        self.body_bytes = 0
        self.target = b""
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.method = ""
        self.path = ""  # undecoded
        self.query: dict[str, str] = {}
        self.version = "1.1"
        self.keeps_alive = False
        self.expects_continue = False
        self.match: Match | None = None
        self.problem: Problem | None = None
        self.closes = False  # the connection has to end with the answer to this request

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    @property
    def held_bytes(self) -> int:
        """What counts among the bytes of all requests: an incomplete head, which is bounded, does not."""
        return self.body_bytes + self.head_bytes if self.has_head else 0

    def refuse(self, status: int, detail: str) -> None:
        """The bytes that follow cannot be trusted, or are too many to read: answer, and close the connection."""
        self.problem = Problem(status=status, detail=detail)
        self.closes = True

    # As the parser reports it

    def add_target(self, part: bytes) -> None:
        self.target += part
        self.head_bytes += len(part)
        if self.head_bytes > HTTP_HEAD_MAX_BYTES:
            self.refuse(414, f"the target of the request is longer than {HTTP_HEAD_MAX_BYTES} bytes")

    def add_header(self, name: bytes, value: bytes) -> None:
        if self.has_head:
            return  # a trailer: its bytes are counted with the chunks
        self.head_bytes += len(name) + len(value) + SEPARATORS_BYTES
        key = name.decode("latin-1").lower()
        before = self.headers.get(key)
        text = value.decode("latin-1")
        self.headers[key] = text if before is None else f"{before}, {text}"
        if before is not None and key in ONCE:
            self.refuse(400, f"the header {key} occurs more than once")
        elif self.head_bytes > HTTP_HEAD_MAX_BYTES:
            self.refuse(431, f"the head of the request is longer than {HTTP_HEAD_MAX_BYTES} bytes")
        elif len(self.headers) > HTTP_HEADERS_MAX:
            self.refuse(431, f"the request has more than {HTTP_HEADERS_MAX} headers")

    def head_complete(self, method: str, version: str, keeps_alive: bool, origins: Origins) -> None:
        self.has_head = True
        self.method, self.version, self.keeps_alive = method, version, keeps_alive
        if version not in VERSIONS:
            self.refuse(505, "this server speaks HTTP/1.1 and HTTP/1.0")
            return
        try:
            self._read_target()
            origins.check(self.headers, host_required=version == "1.1")
            if method != "OPTIONS":
                self.match = self._router.find(method, self.path)
                self._body_limit = self.match.route.body_max_bytes
        except HttpError as error:
            self.problem = error.problem
        if len(self.headers) > 1:
            self._check_body_headers()

    def _read_target(self) -> None:
        try:
            target = self.target.decode("ascii")
        except UnicodeDecodeError:
            raise HttpError(400, "the target has bytes that are not ASCII; percent-encode them") from None
        if target.startswith(("http://", "https://")):
            host, slash, rest = target.partition("://")[2].partition("/")
            self.headers["host"] = host  # it takes precedence over the header (RFC 9112, 3.2.2)
            target = slash + rest
        if not target.startswith("/") and not (target == "*" and self.method == "OPTIONS"):
            raise HttpError(400, "the target of the request does not begin with a slash")
        if "#" in target:
            raise HttpError(400, "the target of the request has a fragment")
        self.path, _, query = target.partition("?")
        if query:
            self.query = read_pairs(query.encode(), "the query")
        if "%" in self.path:
            decoded(self.path)

    def _check_body_headers(self) -> None:
        headers = self.headers
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            self.refuse(501, "the only transfer coding that is supported is chunked")
        elif coding is not None and self.version == "1.0":
            self.refuse(400, "HTTP/1.0 has no chunked bodies")
        elif headers.get("content-encoding", "identity").strip().lower() != "identity":
            self.refuse(415, "compressed bodies are not accepted: send the body as it is")
        elif int(headers.get("content-length", "0")) > self._body_limit:  # digits only: the parser saw to that
            self._refuse_body()
        elif "expect" in headers:
            self._check_expectation()

    def _check_expectation(self) -> None:
        if self.headers["expect"].strip().lower() != "100-continue":
            self.refuse(417, "the only expectation that is supported is 100-continue")
        elif self.problem is not None:
            self.closes = True  # the client waits, or sends a body that is not read
        else:
            self.expects_continue = self.version != "1.0"

    def _refuse_body(self) -> None:
        self._body = b""
        self.refuse(413, f"the body is larger than {self._body_limit} bytes, the limit of this path")

    def add_body(self, part: bytes) -> None:
        self.body_bytes += len(part)
        if self.body_bytes > self._body_limit:
            self._refuse_body()
        elif self.problem is None:
            if not self._body:
                self._body = part  # most bodies come in one part, which need not be copied
            elif isinstance(self._body, bytearray):
                self._body += part
            else:
                self._body = bytearray(self._body + part)

    def check_raw_bytes(self) -> None:
        """After each piece: bound what the parser itself keeps or skips."""
        if not self.has_head:
            if self.raw_bytes > HTTP_HEAD_MAX_BYTES:
                self.refuse(431, f"the head of the request is longer than {HTTP_HEAD_MAX_BYTES} bytes")
        elif self.raw_bytes - 2 * HTTP_HEAD_MAX_BYTES > self.body_bytes * (1 + CHUNK_FRAME_MAX_BYTES):
            self.refuse(400, "the chunk sizes, extensions and trailers of the body are too large")
