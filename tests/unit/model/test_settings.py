"""One table, four sources in rising order, and a sentence for every mistake."""

import pytest

from tailrace.model.settings import SettingError, Settings, load, row, rows, variable_name, yaml_name


def test_every_default_is_allowed() -> None:
    assert load({}, {}, {}) == Settings()


def test_each_source_beats_the_one_before() -> None:
    yaml = {"kafka_port": 1, "num_partitions": 1, "host": "a", "fsync": "never"}
    environment = {"TAILRACE_KAFKA_PORT": "2", "TAILRACE_NUM_PARTITIONS": "2", "TAILRACE_HOST": "b", "HOME": "/"}
    flags = {"kafka_port": "3", "num_partitions": 3, "host": None}
    settings = load(yaml, environment, flags)
    assert (settings.kafka_port, settings.num_partitions, settings.host, settings.fsync) == (3, 3, "b", "never")


def test_names_follow_from_kafkas() -> None:
    for name, one in rows().items():
        assert load({yaml_name(name): one.default}, {}, {}) == Settings()
        assert load({}, {variable_name(name): str(one.default)}, {}) == Settings()
        assert row(one).help.endswith(".")
    assert yaml_name("log.roll.ms") == "log_roll_ms"
    assert variable_name("log.roll.ms") == "TAILRACE_LOG_ROLL_MS"
    assert load({"log_roll_ms": 5}, {}, {}).log_segment_ms == 5


def test_no_name_or_flag_is_given_twice() -> None:
    assert len(rows()) == len(Settings.__dataclass_fields__)
    flags = [row(one).flag for one in rows().values() if row(one).flag]
    assert len(flags) == len(dict.fromkeys(flags))


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ({"kafka_prt": 1}, "there is no setting 'kafka_prt'; did you mean 'kafka_port'\\?"),
        ({"kafka.port": 1}, "did you mean 'kafka_port'"),
        ({"zzzzzz": 1}, "there is no setting 'zzzzzz'$"),
        ({7: 1}, "there is no setting 7"),
        ({"kafka_port": "many"}, "kafka.port=many: it must be a whole number"),
        ({"kafka_port": 9092.0}, "whole number"),
        ({"kafka_port": True}, "whole number"),
        ({"kafka_port": "9_092"}, "whole number"),
        ({"kafka_port": "٩"}, "whole number"),
        ({"kafka_port": "9" * 5000}, "whole number"),
        ({"kafka_port": None}, "one value"),
        ({"kafka_port": 65536}, "kafka.port=65536: it must be from 0 to 65535"),
        ({"host": None}, "host=None: it must be one value"),
        ({"host": ["a", "b"]}, "one value"),
        ({"broker_rack": True}, "quotes"),
        ({"fsync": "sometimes"}, "fsync=sometimes: it must be one of always, interval, never"),
        ({"auto_create_topics_enable": "yes"}, "true or false"),
        ({"default_replication_factor": 0}, "-1 or from 1"),
        ({"log_message_timestamp_type": "Now"}, "CreateTime, LogAppendTime"),
    ],
)
def test_a_mistake_is_named(yaml: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        load(yaml, {}, {})


def test_a_wrong_variable_is_named_as_it_was_written() -> None:
    with pytest.raises(SettingError, match="no setting 'TAILRACE_FSINC'; did you mean 'TAILRACE_FSYNC'"):
        load({}, {"TAILRACE_FSINC": "never"}, {})


def test_a_mistake_in_a_weaker_source_is_still_a_mistake() -> None:
    with pytest.raises(SettingError, match="whole number"):
        load({"kafka_port": "many"}, {}, {"kafka_port": 1})


def test_values_are_read_from_text() -> None:
    settings = load({}, {"TAILRACE_AUTO_CREATE_TOPICS_ENABLE": " False", "TAILRACE_LOG_RETENTION_MS": " -1 "}, {})
    assert settings.auto_create_topics_enable is False
    assert settings.log_retention_ms == -1
    assert load({"broker_rack": 12}, {}, {}).broker_rack == "12"


def test_settings_made_in_code_are_checked_too() -> None:
    with pytest.raises(SettingError, match=r"kafka\.port"):
        Settings(kafka_port=-1)
