"""Puts responses in the order of the requests, in whatever order they are ready. No I/O.

Each request has a place in the queue from when it is read until its response leaves. A place that has no response after
`ANSWER_MAX_S` is given EAGAIN; a response that is ready later is dropped.
"""

from collections import deque
from typing import Final

ANSWER_MAX_S: Final = 25.0  # below the 30 s after which the sockets of DMQP's clients time out


class Place:
    """One request, as far as its response is concerned."""

    __slots__ = ("began_at", "held_bytes", "response", "topic_id")

    def __init__(self, topic_id: int, held_bytes: int, began_at: float) -> None:
        self.topic_id = topic_id
        self.held_bytes = held_bytes  # of its payload
        self.began_at = began_at
        self.response: bytes | None = None


class AnswerQueue:
    def __init__(self) -> None:
        self._places: deque[Place] = deque()
        self.held_bytes = 0  # of the payloads of all requests that are not answered

    def __len__(self) -> int:
        return len(self._places)

    def add(self, topic_id: int, held_bytes: int, now: float) -> Place:
        place = Place(topic_id, held_bytes, now)
        self._places.append(place)
        self.held_bytes += held_bytes
        return place

    def due(self) -> list[bytes]:
        """The responses that may leave now; their places are given up."""
        out: list[bytes] = []
        places = self._places
        while places and (response := places[0].response) is not None:
            self.held_bytes -= places.popleft().held_bytes
            out.append(response)
        return out

    def overdue(self, now: float) -> list[Place]:
        """The places without a response that have waited too long."""
        if not self._places or self._places[0].began_at > now - ANSWER_MAX_S:
            return []
        return [one for one in self._places if one.response is None and one.began_at <= now - ANSWER_MAX_S]

    def unanswered(self) -> list[Place]:
        return [one for one in self._places if one.response is None]

    def clear(self) -> None:
        self._places.clear()
        self.held_bytes = 0
