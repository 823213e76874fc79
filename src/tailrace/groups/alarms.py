"""What groups have to look at when its time comes."""

from typing import NamedTuple


class Alarm(NamedTuple):
    """What to look at. One of each is set at a time."""

    group_id: str
    what: str
    member_id: str = ""
