"""Addresses are parsed from text, and a part that is not an address is named."""

import pytest

from tailrace.model.addresses import Address, parse_addresses


def test_addresses_keep_their_order() -> None:
    assert parse_addresses("b1:9092, 10.0.0.2:1,[::1]:65535") == (("b1", 9092), ("10.0.0.2", 1), ("::1", 65535))
    assert parse_addresses("") == parse_addresses("  ") == ()


def test_an_address_is_shown_as_it_was_written() -> None:
    for text in ("b1:9092", "[fe80::1%eth0]:1"):
        assert [str(one) for one in parse_addresses(text)] == [text]
    assert str(Address("::1", 9)) == "[::1]:9"


@pytest.mark.parametrize(
    "text", ["b1", "b1:", ":9092", "b1:0", "b1:65536", "b1:-1", "b1:1,", "b1 b2:1", "::1:9092", "b1:٣", "kafka://b1:1"]
)
def test_text_that_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        parse_addresses(text)
