"""The errors of a call to a peer that got no answer. The peer may have carried out the request all the same."""

from tailrace.wire.errors import Error


class Unreachable(ConnectionError):
    """The peer is not connected, the connection was lost, or the call timed out."""


class Refused(Unreachable):
    """One of the two ends refused the other's hello."""

    def __init__(self, error: Error, why: str, *, by_peer: bool = False) -> None:
        super().__init__(f"{error.name}: {why}")
        self.error = error
        self.why = why
        self.by_peer = by_peer  # the peer refused this broker; otherwise this broker refused the peer
