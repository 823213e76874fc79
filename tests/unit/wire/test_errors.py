"""Kafka's error codes, against kio's table."""

from kio.schema.errors import ErrorCode

from tailrace.wire.errors import Error


def test_names_codes_and_retriability_equal_kio() -> None:
    ours = {error.name: (error.value, error.retriable) for error in Error}
    assert ours == {error.name.upper(): (error.value, error.retriable) for error in ErrorCode}


def test_no_code_is_left_out() -> None:
    assert sorted(Error) == list(range(-1, 134))
    assert Error(3) is Error.UNKNOWN_TOPIC_OR_PARTITION
