"""`tailrace.client.exchange`: versions, numbers and the order of responses, without a connection."""

import pytest

from tailrace.client.exchange import FIRST_REQUEST, FIRST_VERSION, Exchange
from tailrace.client.faults import Unsupported
from tailrace.wire.compile import encode
from tailrace.wire.headers import response_header
from tailrace.wire.messages.api_versions import ApiRange, ApiVersionsResponse
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.metadata import MetadataRequest
from tailrace.wire.primitives import WireError

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
HEARTBEAT_KEY = 12
METADATA_KEY = 3


def exchange(caps: dict[int, int] | None = None, **offered: tuple[int, int]) -> Exchange:
    found = Exchange("broker:1", "test", caps or {})
    keys = {"heartbeat": HEARTBEAT_KEY, "metadata": METADATA_KEY}
    ranges = [
        ApiRange(api_key=keys[name], min_version=first, max_version=last) for name, (first, last) in offered.items()
    ]
    found.learn(ApiVersionsResponse(api_keys=tuple(ranges)))
    return found


def heartbeat_response(number: int, version: int, throttle_ms: int = 0) -> bytes:
    return response_header(HEARTBEAT_KEY, number, version >= 4) + encode(
        HeartbeatResponse(throttle_time_ms=throttle_ms, error_code=0), version
    )


def test_the_newest_version_of_both_sides_is_used() -> None:
    assert exchange(heartbeat=(0, 99)).version(HEARTBEAT_KEY) == 4
    assert exchange(heartbeat=(0, 2)).version(HEARTBEAT_KEY) == 2
    assert exchange({HEARTBEAT_KEY: 1}, heartbeat=(0, 99)).version(HEARTBEAT_KEY) == 1


def test_versions_that_do_not_overlap_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="broker:1 supports Heartbeat 5 to 9, this client 0-4"):
        exchange(heartbeat=(5, 9)).version(HEARTBEAT_KEY)
    with pytest.raises(Unsupported, match="broker:1 does not support Heartbeat"):
        exchange(metadata=(0, 5)).version(HEARTBEAT_KEY)
    with pytest.raises(Unsupported, match=r"supports Metadata only up to version 3: .*allow_auto_topic_creation"):
        exchange(metadata=(0, 3)).request(MetadataRequest(topics=None, allow_auto_topic_creation=False))


def test_only_api_versions_can_be_asked_before_versions_are_known() -> None:
    fresh = Exchange("broker:1", "test")
    assert fresh.request(FIRST_REQUEST, version=FIRST_VERSION)[4:8] == b"\x00\x12\x00\x00"
    with pytest.raises(Unsupported):
        fresh.request(HEARTBEAT)


def test_responses_belong_to_requests_in_order() -> None:
    found = exchange(heartbeat=(0, 4))
    for token in "ab":
        found.request(HEARTBEAT, token)
    assert len(found) == 2
    assert [found.response(heartbeat_response(number, 4, number))[0] for number in (1, 2)] == ["a", "b"]
    with pytest.raises(WireError, match="without a request"):
        found.response(heartbeat_response(3, 4))


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_response_out_of_order_is_refused(number: int) -> None:
    found = exchange(heartbeat=(0, 4))
    found.request(HEARTBEAT, "a")
    with pytest.raises(WireError, match=f"correlation id {number}, expected 1"):
        found.response(heartbeat_response(number, 4))
    assert found.abandon() == ["a"]
    assert len(found) == 0


def test_a_request_that_cannot_be_encoded_is_not_awaited() -> None:
    found = exchange(metadata=(0, 3), heartbeat=(0, 4))
    with pytest.raises(Unsupported):
        found.request(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    found.request(HEARTBEAT, "a")
    assert found.response(heartbeat_response(1, 4))[0] == "a"


def test_numbers_begin_anew_at_the_end_of_their_range() -> None:
    found = exchange(heartbeat=(0, 4))
    found._correlation_id = 2**31 - 2
    for token, number in (("a", 2**31 - 1), ("b", 1)):
        found.request(HEARTBEAT, token)
        assert found.response(heartbeat_response(number, 4))[0] == token
