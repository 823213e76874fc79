"""One driver for each client, in the order of the ledger's columns."""

from tests.interop.client import Client
from tests.interop.drivers.aio import Aiokafka
from tests.interop.drivers.confluent import Confluent
from tests.interop.drivers.franz_go import FranzGo
from tests.interop.drivers.java import Java
from tests.interop.drivers.kafka_python import KafkaPython
from tests.interop.drivers.kafka_tools import KafkaTools
from tests.interop.drivers.kafkajs import KafkaJs
from tests.interop.drivers.kcat import Kcat

DRIVERS: tuple[type[Client], ...] = (Confluent, Aiokafka, KafkaPython, Kcat, Java, KafkaTools, FranzGo, KafkaJs)
