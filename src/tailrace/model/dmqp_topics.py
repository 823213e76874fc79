"""Topic ids of DMQP: one byte each, and which topics they stand for (`dmqp.topics`)."""

import re
from typing import Final

from tailrace.model.limits import TOPIC_NAME_MAX_CHARS

DMQP_TOPIC_IDS: Final = range(256)
TOPIC_ID: Final = re.compile("[0-9]{1,3}")
TOPIC_NAME: Final = re.compile(f"(?!__)[A-Za-z0-9._-]{{1,{TOPIC_NAME_MAX_CHARS}}}")  # internal topics are left out


def parse_topic_table(text: str) -> dict[int, str]:
    """`3=orders,4=mails` as a table. ValueError if it is none."""
    table: dict[int, str] = {}
    for pair in text.split(",") if text.strip() else ():
        left, _, name = (part.strip() for part in pair.partition("="))
        if TOPIC_ID.fullmatch(left) is None or int(left) not in DMQP_TOPIC_IDS:
            raise ValueError(f"{left!r} is no topic id from 0 to 255")
        if TOPIC_NAME.fullmatch(name) is None or name in (".", ".."):
            raise ValueError(f"{name!r} is no topic name")
        if int(left) in table or name in table.values():
            raise ValueError(f"{pair.strip()!r} repeats an id or a topic")
        table[int(left)] = name
    return table


def is_topic_table(text: str) -> bool:
    try:
        parse_topic_table(text)
    except ValueError:
        return False
    return True
