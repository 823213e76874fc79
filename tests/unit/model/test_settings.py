"""Settings come from four sources in rising precedence; each mistake has a message that names it."""

import pytest

from tailrace.model.settings import SettingError, Settings, load, parse, row, rows, variable_name, yaml_name


def test_the_defaults_are_valid() -> None:
    assert load({}, {}, {}) == Settings()


def test_each_source_overrides_the_one_before() -> None:
    yaml = {"kafka_port": 1, "num_partitions": 1, "host": "a", "fsync": "never"}
    environment = {"TAILRACE_KAFKA_PORT": "2", "TAILRACE_NUM_PARTITIONS": "2", "TAILRACE_HOST": "b", "HOME": "/"}
    flags = {"kafka_port": "3", "num_partitions": 3, "host": None}
    settings = load(yaml, environment, flags)
    assert (settings.kafka_port, settings.num_partitions, settings.host, settings.fsync) == (3, 3, "b", "never")


def test_yaml_and_environment_names_follow_from_kafkas() -> None:
    for name, one in rows().items():
        assert load({yaml_name(name): one.default}, {}, {}) == Settings()
        assert load({}, {variable_name(name): str(one.default)}, {}) == Settings()
        assert row(one).help.endswith(".")
    assert yaml_name("log.roll.ms") == "log_roll_ms"
    assert variable_name("log.roll.ms") == "TAILRACE_LOG_ROLL_MS"
    assert load({"log_roll_ms": 5}, {}, {}).log_segment_ms == 5


def test_names_and_flags_are_unique() -> None:
    assert len(rows()) == len(Settings.__dataclass_fields__)
    flags = [row(one).flag for one in rows().values() if row(one).flag]
    assert len(flags) == len(dict.fromkeys(flags))


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ({"kafka_prt": 1}, "unknown setting 'kafka_prt'; did you mean 'kafka_port'\\?"),
        ({"kafka.port": 1}, "did you mean 'kafka_port'"),
        ({"zzzzzz": 1}, "unknown setting 'zzzzzz'$"),
        ({7: 1}, "unknown setting 7"),
        ({"kafka_port": "many"}, "kafka.port=many: it must be a whole number"),
        ({"kafka_port": 9092.0}, "whole number"),
        ({"kafka_port": True}, "whole number"),
        ({"kafka_port": "9_092"}, "whole number"),
        ({"kafka_port": "٩"}, "whole number"),
        ({"kafka_port": "9" * 5000}, "whole number"),
        ({"kafka_port": None}, "kafka.port has no value: set one, or remove the setting"),
        ({"kafka_port": 65536}, "kafka.port=65536: it must be from 0 to 65535"),
        ({"data_dir": ""}, "data.dir is empty: it must be a path"),
        ({"host": ["a", "b"]}, "a single value"),
        ({"broker_rack": True}, "quotes"),
        ({"fsync": "sometimes"}, "fsync=sometimes: it must be one of always, interval, never"),
        ({"auto_create_topics_enable": "maybe"}, "true or false"),
        ({"auto_create_topics_enable": 2}, "true or false"),
        ({"default_replication_factor": 0}, "-1 or from 1"),
        ({"log_message_timestamp_type": "Now"}, "CreateTime, LogAppendTime"),
        ({"join": "b1"}, "join=b1: it must be HOST:PORT, several separated by commas"),
        ({"join": "b1:9092;b2:9092"}, "join=b1:9092;b2:9092: it must be HOST:PORT"),
        ({"peer_port": 65536}, "peer.port=65536: it must be from 0 to 65535"),
        ({"broker_session_timeout_ms": 0}, "broker.session.timeout.ms=0: it must be from 100"),
    ],
)
def test_a_mistake_in_yaml_is_named(yaml: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load(yaml, {}, {})


def test_a_mistake_in_the_environment_names_the_variable() -> None:
    message = "unknown setting 'TAILRACE_FSINC' in the environment; did you mean 'TAILRACE_FSYNC'"
    with pytest.raises(SettingError, match=message):
        load({}, {"TAILRACE_FSINC": "never"}, {})
    with pytest.raises(SettingError, match=r"to 65535 \(TAILRACE_KAFKA_PORT in the environment\)$"):
        load({}, {"TAILRACE_KAFKA_PORT": "70000"}, {})


def test_a_mistake_in_a_file_names_the_file() -> None:
    with pytest.raises(SettingError, match=r"whole number \(kafka_port in b.yaml\)$"):
        load({"kafka_port": "many"}, {}, {}, file="b.yaml")
    with pytest.raises(SettingError, match=r"unknown setting 'kafka_prt' in b.yaml; did you mean 'kafka_port'\?$"):
        load({"kafka_prt": 1}, {}, {}, file="b.yaml")


INJECTED = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_KAFKA", "PORT", "PORT_9092_TCP", "PORT_9092_TCP_ADDR")


@pytest.mark.parametrize("name", INJECTED)
def test_variables_that_kubernetes_sets_for_a_service_named_tailrace_are_ignored(name: str) -> None:
    assert load({}, {f"TAILRACE_{name}": "tcp://10.0.0.1:9092"}, {}) == Settings()


@pytest.mark.parametrize("name", ["SERVICE", "SERVICE_HOSTS", "PORTS", "PORT_TCP", "PORT_9092_TCPX", "MY_PORT"])
def test_similar_variables_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match=f"unknown setting 'TAILRACE_{name}'"):
        load({}, {f"TAILRACE_{name}": "1"}, {})


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("On", True), (1, True), ("no", False), ("off", False)])
def test_yes_and_no_are_booleans_in_files_variables_and_flags(word: object, value: bool) -> None:
    assert load({"delete_topic_enable": word}, {}, {}).delete_topic_enable is value
    assert load({}, {"TAILRACE_DELETE_TOPIC_ENABLE": str(word)}, {}).delete_topic_enable is value
    assert load({}, {}, {"delete_topic_enable": word}).delete_topic_enable is value


def test_clients_may_set_only_true_and_false() -> None:
    assert parse("preallocate", bool, "False") is False
    with pytest.raises(SettingError, match="true or false"):
        parse("preallocate", bool, "yes")


def test_a_mistake_in_an_overridden_source_is_refused_too() -> None:
    with pytest.raises(SettingError, match="whole number"):
        load({"kafka_port": "many"}, {}, {"kafka_port": 1})


def test_values_are_parsed_from_text() -> None:
    settings = load({}, {"TAILRACE_AUTO_CREATE_TOPICS_ENABLE": " False", "TAILRACE_LOG_RETENTION_MS": " -1 "}, {})
    assert settings.auto_create_topics_enable is False
    assert settings.log_retention_ms == -1
    assert load({"broker_rack": 12}, {}, {}).broker_rack == "12"


def test_settings_created_in_code_are_checked_too() -> None:
    with pytest.raises(SettingError, match=r"kafka\.port"):
        Settings(kafka_port=-1)


def test_settings_for_joining_a_cluster() -> None:
    settings = load({}, {}, {"join": "b1:9092,b2:9092", "peer_port": "7001", "broker_rack": "r1"})
    assert (settings.join, settings.peer_port, settings.broker_rack) == ("b1:9092,b2:9092", 7001, "r1")
    assert (row(rows()["broker.rack"]).flag, row(rows()["join"]).flag) == ("--rack", "--join")


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        (
            {"replica_fetch_wait_max_ms": 1001},
            "wait.max.ms=1001 must be at most half of controller.quorum.fetch.timeout.ms=2000: at most 1000$",
        ),
        ({"controller_quorum_fetch_timeout_ms": 999}, "half of controller.quorum.fetch.timeout.ms=999: "),
        ({"broker_session_timeout_ms": 999}, "half of broker.session.timeout.ms=999: "),
        ({"replica_lag_time_max_ms": 999}, "half of replica.lag.time.max.ms=999: "),
    ],
)
def test_the_fetch_wait_is_at_most_half_of_each_timeout(yaml: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        load(yaml, {}, {})


def test_the_fetch_wait_may_be_exactly_half_of_a_timeout() -> None:
    load({"replica_fetch_wait_max_ms": 1000, "controller_quorum_fetch_timeout_ms": 2000}, {}, {})
