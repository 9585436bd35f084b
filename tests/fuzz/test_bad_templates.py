"""No template is an error of ours: as in the invariants, for five minutes."""

from __future__ import annotations

import pytest

from tests.kit.probes import fuzz_templates, fuzzing

LASTING_S = 300

pytestmark = pytest.mark.timeout(900)


def test_whatever_a_template_holds_only_named_errors_are_raised(seed):
    fuzz_templates.run_for(seed, fuzzing.seconds(LASTING_S))
