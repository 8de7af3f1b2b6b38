"""How much of a kernel is launched at a time, and which launches are waited for."""

from dataclasses import dataclass

import pytest

from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import discover
from pyedmcl.launch import staging
from pyedmcl.launch.staging import LAUNCH_SECONDS, Pacer


@dataclass
class Event:
    """A launch, and how often somebody waited for its end."""

    took: float
    waits: int = 0

    @property
    def seconds(self):
        self.waits += 1
        return self.took


@pytest.fixture
def info(monkeypatch):
    monkeypatch.setattr(staging, "_shown", {})
    return discover()[0]


def test_a_rate_that_was_shown_is_the_first_guess_of_the_next_call(info):
    rate = quirks_for(info).first_rate
    first, event = Pacer(info, "work", 3), Event(0.02)
    first.launched(event, rate)  # a second of work as it was guessed
    assert event.waits == 1
    again, short = Pacer(info, "work", 3), Event(0.004)
    assert again.units(rate) == first.units(rate) == int(LAUNCH_SECONDS / 0.02)
    again.launched(short, rate / 5)
    assert short.waits == 0, "a launch that is known to be short is not waited for"
    assert Pacer(info, "work", 4).units(rate) == Pacer(info).units(rate) == 1


def test_work_without_a_name_begins_with_the_guess_for_the_device(info):
    rate = quirks_for(info).first_rate
    Pacer(info).launched(Event(0.001), rate)
    assert Pacer(info).units(rate) == 1


def test_a_rate_that_was_too_high_is_measured_again(info):
    rate = quirks_for(info).first_rate
    Pacer(info, "work").launched(Event(0.02), rate)
    Pacer(info, "work").launched(Event(4.0), 10 * rate)  # 0.2 seconds were expected
    assert Pacer(info, "work").units(rate / 100) == int(LAUNCH_SECONDS * 10 / 4 * 100)
