"""All stories that are told to both services."""

from __future__ import annotations

import itertools
from typing import Final

from tests.conformance.ironic import (
    script,
    story_allocations,
    story_basics,
    story_clients,
    story_details,
    story_document,
    story_drawn,
    story_hardware,
    story_lists,
    story_more,
    story_nodes,
    story_records,
    story_verbs,
)

SHELVES: Final = (
    story_basics, story_nodes, story_records, story_lists, story_verbs, story_more, story_hardware,
    story_drawn, story_allocations, story_document, story_clients, story_details,
)  # fmt: skip


def draw(seed: int) -> list[script.Story]:
    """Return the stories of a seed, always in the same order."""
    scripts = itertools.chain.from_iterable(shelf.draw(seed) for shelf in SHELVES)
    return [each.story() for each in scripts]
