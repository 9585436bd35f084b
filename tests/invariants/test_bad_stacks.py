"""No template is an error of ours over HTTP: a short look at what ``make fuzz`` does for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import sampling
from tests.kit.probes import fuzz_stacks


@pytest.mark.timeout(300)
def test_whatever_a_template_holds_the_api_answers_as_it_documents(
    tmp_path: Path, seed: int
) -> None:
    told = fuzz_stacks.run(tmp_path, seed, examples=sampling.count(400))
    assert told["POST 201"] > 4, "too little of what is drawn becomes a stack"
    assert told["POST 400"] > 4, "too little of what is drawn is refused"
