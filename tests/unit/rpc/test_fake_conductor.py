"""The fake conductor of the API's tests must offer what the contract promises."""

from __future__ import annotations

import inspect

import pytest

from bloomery.rpc import contract
from tests.fakes.conductor import FakeConductor


@pytest.mark.parametrize("name", contract.METHODS)
def test_fake_takes_the_arguments_of_the_contract(name):
    promised = inspect.signature(getattr(contract.Conductor, name)).parameters
    offered = inspect.signature(getattr(FakeConductor, name)).parameters
    assert list(offered) == list(promised)
