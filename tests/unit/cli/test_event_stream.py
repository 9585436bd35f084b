"""Following events over connections that end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bloomery.cli.client import ApiError, follow_events


def frame(number: int) -> list[bytes]:
    return [
        b"id: %d\n" % number, b"event: baremetal.node.update.end\n",
        b'data: {"id": %d, "at": "now", "event_type": "t", "object_uuid": "u", "facts": {}}\n'
        % number, b"\n",
    ]  # fmt: skip


class Server:
    """Answers each connection with the next of ``answers``: lines, and how it ends."""

    def __init__(self, *answers: list[bytes] | ApiError) -> None:
        self.answers = iter(answers)
        self.seen: list[str | None] = []

    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        self.seen.append(headers.get("Last-Event-ID"))
        answer = next(self.answers)
        if isinstance(answer, ApiError):
            raise answer
        yield from answer


def refusal(status: int | None) -> ApiError:
    return ApiError(reason="no", answer=status)


def follow(server: Any, count: int, since: int | None = None) -> list[int]:
    events = follow_events(server, {}, since, pause=lambda seconds: None)
    return [event["id"] for event in itertools.islice(events, count)]


def test_a_lost_connection_is_gone_on_with_after_the_last_event() -> None:
    server = Server([b": events\n", *frame(1), *frame(2)], refusal(None), refusal(503), frame(3))
    assert follow(server, 3) == [1, 2, 3]
    assert server.seen == [None, "2", "2", "2"]


def test_what_was_missed_can_be_asked_for() -> None:
    server = Server(frame(8))
    assert follow(server, 1, since=7) == [8]
    assert server.seen == ["7"]


@pytest.mark.parametrize("answers", [[refusal(None)], [frame(1), refusal(401)]])
def test_what_will_not_be_answered_ends_it(answers: list[Any]) -> None:
    with pytest.raises(ApiError):
        follow(Server(*answers), 2)
