"""No template is an error of ours over HTTP: as in the invariants, with many more."""

from __future__ import annotations

import pytest

from tests.kit.probes import fuzz_stacks

pytestmark = pytest.mark.timeout(900)


def test_whatever_a_template_holds_the_api_answers_as_it_documents(tmp_path, seed):
    fuzz_stacks.run(tmp_path, seed, examples=2_500)
