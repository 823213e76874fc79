"""Why a peer gave no answer. The request may have been carried out all the same."""

from tailrace.wire.errors import Error


class Unreachable(ConnectionError):
    """There is no way to the peer, or it was lost, or time was up."""


class Refused(Unreachable):
    """One of the two ends heard the other's hello, and does not talk to it."""

    def __init__(self, error: Error, why: str, *, by_peer: bool = False) -> None:
        super().__init__(f"{error.name}: {why}")
        self.error = error
        self.why = why
        self.by_peer = by_peer  # the other end refused us; otherwise we refused it
