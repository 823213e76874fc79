"""Alarms, compared with a simple model: a dictionary that is searched."""

import random

from tailrace.groups.turn import Alarm
from tailrace.model.alarms import Alarms
from tailrace.model.limits import ALARMS_PER_TURN_MAX


def ring(alarms: Alarms[Alarm], now: float) -> list[Alarm]:
    found = []
    while (alarm := alarms.take(now)) is not None:
        found.append(alarm)
    return found


def test_any_order_of_setting_postponing_and_cancelling() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        alarms: Alarms[Alarm] = Alarms()
        simple: dict[Alarm, float] = {}
        now = 0.0
        for _ in range(100):
            alarm = Alarm("g", "session", str(chance.randrange(5)))
            match chance.randrange(4):
                case 0 | 1:
                    simple[alarm] = now + chance.randrange(1, 20)
                    alarms.set(alarm, simple[alarm])
                case 2:
                    simple.pop(alarm, None)
                    alarms.cancel(alarm)
                case 3:
                    now += chance.randrange(10)
                    due = [one for one, at in simple.items() if at <= now]
                    assert sorted(ring(alarms, now)) == sorted(due)
                    simple = {one: at for one, at in simple.items() if at > now}
            assert len(alarms) == len(simple)
            assert not simple or (alarms.first or now) <= min(simple.values())


def test_an_alarm_that_is_postponed_often_has_one_heap_entry() -> None:
    alarms: Alarms[Alarm] = Alarms()
    for at in range(1000):
        alarms.set(Alarm("g", "session", "m"), float(at + 10))
    assert alarms.first == 10.0
    assert ring(alarms, 11.0) == []
    assert alarms.first == 1009.0


def test_alarms_beyond_the_bound_are_due_in_the_next_turn() -> None:
    alarms: Alarms[Alarm] = Alarms()
    for number in range(ALARMS_PER_TURN_MAX + 1):
        alarms.set(Alarm("g", "session", str(number)), 1.0)
    assert len(list(alarms.rung(2.0))) == ALARMS_PER_TURN_MAX
    assert alarms.first == 1.0
    assert len(list(alarms.rung(2.0))) == 1
