"""`tailrace.local.blocking_request`: one request over a blocking socket, against a real broker."""

import socket

import pytest

from tailrace.local.blocking_request import ask, versions_of
from tailrace.local.broker import LocalBroker
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.primitives import WireError


def test_one_connection_carries_one_request_after_the_other() -> None:
    with LocalBroker() as broker, socket.create_connection(("127.0.0.1", broker.port), 20) as connection:
        versions = versions_of(connection)
        answers = [ask(connection, DescribeClusterRequest(), versions) for _ in range(2)]
        assert [[one.broker_id for one in answer.brokers] for answer in answers] == [[1], [1]]
        with pytest.raises(WireError, match="does not support DescribeCluster"):
            ask(connection, DescribeClusterRequest(), {})
