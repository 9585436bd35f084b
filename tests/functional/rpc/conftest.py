"""One endpoint behind each transport, as long as a module of tests runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kit.servers import rpc


@pytest.fixture(scope="module")
def links() -> Iterator[Callable[[str], rpc.Link]]:
    """Return what gives a link by the name of its transport."""
    by_name: dict[str, rpc.Link] = {}
    with contextlib.ExitStack() as until_done:

        def link_over(transport: str) -> rpc.Link:
            if transport not in by_name:
                made = rpc.link(transport, rpc.Endpoint(), rpc_response_timeout=20)
                by_name[transport] = until_done.enter_context(made)
            by_name[transport].endpoint.forget()
            return by_name[transport]

        yield link_over


@pytest.fixture(params=["none", "json-rpc", "oslo"])
def link(request: Any, links: Callable[[str], rpc.Link]) -> rpc.Link:
    return links(request.param)


@pytest.fixture(params=["json-rpc", "oslo"])
def remote_link(request: Any, links: Callable[[str], rpc.Link]) -> rpc.Link:
    """A link that packs messages, which may be lost."""
    return links(request.param)
