"""`tailrace.local.cluster_view`: the cluster as a broker describes it, and why it is not healthy."""

import socket
import threading
from dataclasses import replace

import pytest

from tailrace.local.broker import LocalBroker
from tailrace.local.cluster_view import BrokerView, ClusterView, NoView, PartitionView, look, look_at_any

whole = PartitionView(topic="t", partition=0, leader=1, leader_epoch=4, replicas=(1, 2), in_sync=(2, 1), offline=())
brokers = tuple(BrokerView(id=id, host="h", port=id, rack=None, is_fenced=False) for id in (1, 2))
healthy = ClusterView(cluster_id="c", controller=2, voters=(1,), brokers=brokers, partitions=(whole,))
three = replace(healthy, brokers=(*brokers, replace(brokers[0], id=3)))


def test_a_broker_describes_its_cluster() -> None:
    with LocalBroker(fsync="never", broker_rack="here") as broker:
        view = look("127.0.0.1", broker.port)
        assert view.brokers == (BrokerView(id=1, host="127.0.0.1", port=broker.port, rack="here", is_fenced=False),)
        assert view.controller == 1
        assert view.why_unwell(1) == ""
        found = look_at_any([("127.0.0.1", 1), ("127.0.0.1", broker.port)])
        assert found.cluster_id == view.cluster_id


@pytest.mark.parametrize(
    ("view", "brokers", "said"),
    [
        (healthy, 2, ""),
        (healthy, 3, "only 1, 2 of 3 brokers are up"),
        (replace(healthy, brokers=(brokers[0], replace(brokers[1], is_fenced=True))), 2, "only 1 of 2"),
        (replace(healthy, controller=None), 2, "there is no controller"),
        (three, 3, "only 1 of 3 are voters of the metadata quorum"),
        (replace(three, voters=(1, 2, 3)), 3, ""),
        (replace(three, voters=None), 3, ""),
        (replace(three, voters=()), 3, "only none of 3 are voters"),
        (replace(healthy, partitions=(replace(whole, leader=None),)), 2, "partition 0 of t has no leader"),
        (replace(healthy, partitions=(replace(whole, leader=9),)), 2, "has no leader"),
        (replace(healthy, partitions=(replace(whole, in_sync=(1,)),)), 2, "only 1 of 1, 2 are in sync"),
    ],
)
def test_why_it_is_not_healthy(view: ClusterView, brokers: int, said: str) -> None:
    assert said in view.why_unwell(brokers)
    assert bool(said) == bool(view.why_unwell(brokers))


def test_partitions_are_found_by_name() -> None:
    assert healthy.partition("t", 0) is whole
    assert healthy.partition("t", 1) is None


@pytest.mark.parametrize("answer", [b"", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x04\x00\x00\x00\x12", b"\x00\x00"])
def test_an_answer_that_cannot_be_decoded_gives_no_view(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(4096)
                caller.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoView):
            look("127.0.0.1", server.getsockname()[1])
        thread.join()


def test_a_broker_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(NoView, match="timed out"):
        look("127.0.0.1", server.getsockname()[1], timeout_s=0.05)
