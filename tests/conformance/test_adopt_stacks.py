"""A stack that the published Heat has abandoned is adopted here."""

from __future__ import annotations

import json

from tests.conformance import adopt_stacks


def test_what_heat_has_made_is_kept() -> None:
    kept = json.loads(adopt_stacks.RECORDED.read_text(encoding="utf-8"))
    assert adopt_stacks.differences(kept["shown"], kept["document"]) == []
