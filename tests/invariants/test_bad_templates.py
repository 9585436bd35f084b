"""No template is an error of ours: a short look at what ``make fuzz`` does for longer."""

from __future__ import annotations

import pytest

from tests.kit import sampling
from tests.kit.probes import fuzz_templates
from tests.kit.stacks import template_calls

BATCHES = sampling.count(4)


@pytest.mark.timeout(300)
def test_whatever_a_template_holds_only_named_errors_are_raised(seed):
    told = fuzz_templates.run(seed, BATCHES)
    valid = sum(count for how, count in told.items() if how.startswith("valid"))
    assert valid * 6 > told.total(), "too little of what is drawn gets past validation"
    assert told["valid, CREATE_FAILED"], "nothing that is drawn fails while it is made"


def test_calls_are_drawn_of_every_function():
    assert set(template_calls.ARGUMENTS) == template_calls.offered()
