"""`tailrace.local.listening_pids`: which process listens at an address."""

import os

from tailrace.local.broker import LocalBroker
from tailrace.local.listening_pids import listening_pids


def test_a_pid_is_that_of_a_process_that_listens_there() -> None:
    with LocalBroker() as broker:
        there, elsewhere, silent = ("127.0.0.1", broker.port), ("192.0.2.1", broker.port), ("127.0.0.1", 1)
        assert listening_pids([there, elsewhere, silent]) == {there: broker.pid}
        assert listening_pids([]) == {}
        assert os.getpid() not in listening_pids([there]).values()
