from __future__ import annotations

import pytest

from tests.kit.stacks import function_vectors
from tests.kit.stacks.function_vectors import VECTORS, Refused


@pytest.mark.parametrize("function", sorted({vector.function for vector in VECTORS}))
def test_a_function_gives_what_heat_gives(function: str):
    for vector in VECTORS:
        if vector.function == function:
            found = function_vectors.outcome(vector)
            assert function_vectors.is_same(found, vector.expected), (vector, found)


def test_every_kind_of_refusal_is_in_the_table():
    found = {vector.expected for vector in VECTORS if isinstance(vector.expected, Refused)}
    assert found == set(Refused)
