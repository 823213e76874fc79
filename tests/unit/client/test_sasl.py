"""`tailrace.client.sasl` and `tailrace.client.scram`: the mechanisms, by their RFCs."""

import pytest

from tailrace.client.faults import SecurityRefused
from tailrace.client.sasl import plain
from tailrace.client.scram import scram


def test_plain_is_as_rfc_4616_has_it() -> None:
    assert next(plain("tim", "tanstaaftanstaaf")) == b"\0tim\0tanstaaftanstaaf"


# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
BOTH_NONCES = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={BOTH_NONCES},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_says_what_rfc_7677_says() -> None:
    exchange = scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert next(exchange) == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.send(SERVER_FIRST.encode()) == f"c=biws,r={BOTH_NONCES},p={proof}".encode()
    with pytest.raises(StopIteration):
        exchange.send(SERVER_FINAL.encode())


def test_names_are_escaped_as_rfc_5802_has_it() -> None:
    assert next(scram("SCRAM-SHA-512", "a=b,c", "", "x")) == b"n,,n=a=3Db=2Cc,r=x"


@pytest.mark.parametrize(
    ("first", "final", "said"),
    [
        (SERVER_FIRST.replace("4096", "4095"), "", "it asks for 4095 iterations"),
        (SERVER_FIRST.replace("4096", "99999999"), "", "it asks for 99999999 iterations"),
        (SERVER_FIRST.replace("rOpr", "stol"), "", "nonce does not continue the client's"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "", "nonce does not continue the client's"),
        (f"r={BOTH_NONCES},i=4096", "", "no salt or no count"),
        ("\udcff", "", "no salt or no count"),
        (SERVER_FIRST, SERVER_FINAL.replace("6rr", "7rr"), "does not prove that it knows the password"),
        (SERVER_FIRST, "e=other-error", "other-error"),
    ],
)
def test_a_server_that_lies(first: str, final: str, said: str) -> None:
    exchange = scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    next(exchange)
    answers = [first.encode("utf-8", "surrogateescape"), final.encode()]
    with pytest.raises(SecurityRefused, match=said):
        list(map(exchange.send, answers))
