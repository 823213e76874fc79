"""Requests to the REST API that are whole, and wrong: each must get a problem (RFC 9457), and none changes anything."""

import json
import random
from typing import Any, Final

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x" * 3000,
    "\ud800",
    [],
    {},
    [[]],
    "\0",
    {"json": {}},
)
TOPICS: Final = ("%ff", "a%2Fb", "a%20b", "x" * 300, "%00", "%E2%82%AC", "a%0D%0Ab")
TEXTS: Final = ("", "-1", "9" * 30, "1e3", "x", "%ff", "a%0Ab", "0x1", "true")
READS: Final = ("offset", "limit", "wait_ms", "form", "timestamp", "max_bytes", "nothing", "Limit")
DEEP: Final = b'{"records": [{"value": {"json": ' + 50_000 * b"[" + 50_000 * b"]" + b"}}]}"
BODIES: Final = (b"", b"{", b"[]", b"null", b"\xff", b'{"a": NaN}', b"1" * 6000, b'{"a": 1, "a": 2}', b'{"records": 1}')


def wrong_request(chance: random.Random) -> tuple[str, str, bytes, list[str], tuple[int, ...]]:
    """Method, path, body, headers, and the statuses of the answer."""
    dice = chance.random()
    if dice < 0.35:  # a field is wrong, whatever the others are
        record = {name: chance.choice(ODD) for name in chance.sample(("key", "value", "headers", "partition"), 2)}
        record[chance.choice(("Value", "offset", "x" * 300, "\ud800", "a/b"))] = chance.choice(ODD)
        body = json.dumps({"records": [{}] * chance.randrange(3) + [record]}).encode()
        return "POST", "/v1/topics/fuzzed/records", body, [], (400,)
    if dice < 0.5:
        path = chance.choice(("/v1/topics", "/v1/topics/fuzzed/records", "/v1/groups/g/offsets", "/v1/queues/q/take"))
        body = chance.choice((*BODIES[:-1], json.dumps({"nothing": chance.choice(ODD)}).encode()))
        return "POST", path, body, [], (400,)
    if dice < 0.505:
        return "POST", "/v1/topics/fuzzed/records", DEEP, [], (400,)
    if dice < 0.65:
        name, text = chance.choice(("nothing", "Limit", "offset%5B%5D")), chance.choice(TEXTS)
        query = f"{chance.choice(READS[:5])}={chance.choice(TEXTS)}&{name}={text}"
        return "GET", f"/v1/topics/fuzzed/partitions/0/records?{query}", b"", [], (400,)
    if dice < 0.8:
        topic = chance.choice(TOPICS)
        path = chance.choice((f"/v1/topics/{topic}", f"/v1/queues/{topic}", f"/v1/topics/{topic}/stream"))
        return "GET", path, b"", [], (400,)
    if dice < 0.85:
        lock = chance.choice(("x", "1-0-0-1-" + "0" * 31, "%ff", "1-0-0-1-" + "G" * 32, "-" * 200))
        return "POST", f"/v1/queues/q/locks/{lock}/accept", b"", [], (400,)
    if dice < 0.88:
        return "POST", f"/v1/queues/q/locks/1-0-0-1-{chance.getrandbits(128):032x}/accept", b"", [], (410,)
    if dice < 0.92:
        kind = chance.choice(("text/html", "application/x-www-form-urlencoded", "x" * 200, "application/xml"))
        return "POST", "/v1/topics/fuzzed/records", b"a=b", [f"Content-Type: {kind}"], (415,)
    if dice < 0.96:
        return "GET", chance.choice(("/v1", "/v1/", "/v1/topics/", "/v1/x/y", "/v1/openapi.json/x")), b"", [], (404,)
    return chance.choice(("PUT", "DELETE", "PATCH")), "/v1/topics", b"", [], (405,)
