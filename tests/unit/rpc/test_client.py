"""A call that led nowhere has the ring read again, once."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.model.request import Request
from bloomery.rpc.client import Client


class Ring:
    def __init__(self, *hosts: str) -> None:
        self.hosts = list(hosts)

    def forget(self) -> None:
        if len(self.hosts) > 1:
            del self.hosts[0]

    def host_of_node(self, **_facts: str) -> str:
        return self.hosts[0]

    def hosts_of_driver(self, _name: str) -> list[str]:
        return ["a", "b"]


class Hosts:
    """A transport: what each host answers, or raises; ``asked`` notes the order."""

    def __init__(self, **hosts: Any) -> None:
        self.hosts, self.asked = hosts, []

    def proxy(self, host: str) -> Any:
        return _Host(self, host)


class _Host:
    def __init__(self, hosts: Hosts, host: str) -> None:
        self._hosts, self._host = hosts, host

    def vif_list(self, *_arguments: Any) -> Any:
        self._hosts.asked.append(self._host)
        answer = self._hosts.hosts[self._host]
        if isinstance(answer, Exception):
            raise answer
        return answer


def ask(ring: Ring, hosts: Hosts) -> Any:
    conductor = Client(ring, hosts).conductor_for_node(driver="d", group="", uuid="u")  # type: ignore[arg-type]
    return conductor.vif_list(Request.new(), "u")


UNREACHED = errors.ConductorUnreached(host="a", reason="gone")
SILENT = errors.ConductorSilent(host="a", method="vif_list", reason="no answer")


def test_the_next_host_is_asked_where_nothing_was_done():
    hosts = Hosts(a=UNREACHED, b=["vif"])
    assert ask(Ring("a", "b"), hosts) == ["vif"]
    assert hosts.asked == ["a", "b"]


def test_a_host_that_the_ring_still_names_is_not_asked_again():
    hosts = Hosts(a=UNREACHED)
    with pytest.raises(errors.ConductorUnreached):
        ask(Ring("a"), hosts)
    assert hosts.asked == ["a"]


def test_two_hosts_that_are_gone_are_enough():
    hosts = Hosts(a=UNREACHED, b=UNREACHED, c=[])
    with pytest.raises(errors.ConductorUnreached):
        ask(Ring("a", "b", "c"), hosts)
    assert hosts.asked == ["a", "b"]


def test_what_may_have_been_done_is_not_asked_of_another():
    hosts = Hosts(a=SILENT, b=["vif"])
    with pytest.raises(errors.ConductorSilent):
        ask(Ring("a", "b"), hosts)
    assert hosts.asked == ["a"]


@pytest.mark.parametrize("_number", range(8))
def test_a_call_that_any_host_can_answer_goes_to_another_one(_number):
    hosts = Hosts(a=UNREACHED, b=["vif"])
    conductor = Client(Ring("a"), hosts).conductor_for_driver("d")  # type: ignore[arg-type]
    assert conductor.vif_list(Request.new(), "u") == ["vif"]
    assert hosts.asked[-1] == "b"
