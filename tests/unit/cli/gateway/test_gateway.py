"""`tailrace gateway`: what it refuses, and why it cannot start."""

import pytest

from tests.unit.cli.program import DEAD_ADDRESS, run_tailrace


def test_it_needs_a_door() -> None:
    ran = run_tailrace("gateway", "--upstream", DEAD_ADDRESS)
    assert (ran.code, ran.out) == (2, "")
    assert "no door is asked for: name at least one, with --http-port, --grpc-port or --dmqp-port" in ran.err


@pytest.mark.parametrize("upstream", ["broker", "127.0.0.1:0", ""])
def test_it_needs_addresses(upstream: str) -> None:
    ran = run_tailrace("gateway", "--upstream", upstream, "--http-port", "0")
    assert (ran.code, ran.out) == (2, "")
    assert "HOST:PORT" in ran.err


def test_it_lends_its_login_to_this_machine_only() -> None:
    ran = run_tailrace("gateway", "--upstream", DEAD_ADDRESS, "--http-port", "0", "--host", "0.0.0.0")
    assert (ran.code, ran.out) == (1, "")
    assert "the HTTP door (--http-port) asks for no login, and would listen on 0.0.0.0" in ran.err


def test_a_setting_that_brokers_do_not_know_is_refused() -> None:
    ran = run_tailrace("gateway", "--upstream", DEAD_ADDRESS, "--http-port", "0", TAILRACE_HTTP_PROT="1")
    assert ran.code == 2
    assert "TAILRACE_HTTP_PORT" in ran.err


def test_the_flags_are_those_of_doors() -> None:
    shown = run_tailrace("gateway", "--help")
    assert shown.code == 0
    assert "--dmqp-port" in shown.out
    assert "--kafka-port" not in shown.out
