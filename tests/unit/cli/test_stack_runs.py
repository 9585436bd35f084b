"""What a run of a stack shows: the last word on each resource, and a service that is away."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.cli import stacks
from bloomery.cli.client import ApiError

LINKS = [{"rel": "stack", "href": "http://h/v1/p/stacks/web/S"}]


def event(number: int, name: str, state: str, thing: str) -> dict[str, Any]:
    return {
        "id": str(number), "resource_name": name, "resource_status": state, "links": LINKS,
        "resource_status_reason": "", "physical_resource_id": thing, "event_time": "now",
    }  # fmt: skip


def resource(name: str, state: str, thing: str) -> dict[str, Any]:
    return event(0, name, state, thing) | {"resource_type": "T"}


def refusal(answer: int | None) -> ApiError:
    return ApiError(reason="Connection refused", answer=answer)


class Service:
    """Each look is a state of the stack, its events, and its resources; or it fails."""

    def __init__(self, *looks: Any) -> None:
        self.looks = iter(looks)
        self.look: Any = None

    def get(self, path: str) -> Any:
        if "/events" in path:
            return {"events": self.look[1]}
        if "/resources" in path:
            return {"resources": self.look[2]}
        self.look = next(self.looks)
        if isinstance(self.look, ApiError):
            raise self.look
        shown = {"stack_name": "web", "id": "S", "stack_status": self.look[0]}
        return {"stack": shown | {"stack_status_reason": ""}}

    def delete(self, path: str) -> None:
        """The looks that follow show what is left."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "_POLL_S", 0)


def watch(service: Any, capsys: pytest.CaptureFixture[str], end: str = "UPDATE_COMPLETE") -> str:
    run = stacks.StackRun(service, "web")
    run._follow("/stacks/web/S")
    run.watch(end)
    return capsys.readouterr().out


def test_the_end_of_a_replaced_resource_is_not_the_end_of_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    news = [event(1, "a", "CREATE_COMPLETE", "new"), event(2, "a", "DELETE_COMPLETE", "old")]
    gone = event(3, "b", "DELETE_COMPLETE", "b")
    service = Service(("UPDATE_COMPLETE", [*news, gone], [resource("a", "CREATE_COMPLETE", "new")]))
    shown = watch(service, capsys)
    assert "] a: DELETE_COMPLETE" in shown  # it was told
    assert "── a  T  CREATE_COMPLETE" in shown
    assert "── b  DELETE_COMPLETE" in shown


def test_a_tree_of_a_deletion_leaves_out_what_was_never_begun(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [resource("a", "DELETE_COMPLETE", "t"), resource("b", "INIT_COMPLETE", "")]
    shown = watch(Service(("DELETE_COMPLETE", [], rows)), capsys, "DELETE_COMPLETE")
    assert "── a  T  DELETE_COMPLETE" in shown
    assert "INIT_COMPLETE" not in shown
    assert "── b  T  INIT_COMPLETE" in watch(Service(("UPDATE_COMPLETE", [], rows)), capsys)


def test_what_is_gone_at_the_first_look_keeps_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service(("DELETE_COMPLETE", [event(1, "a", "DELETE_COMPLETE", "t")], []))
    service.look = ("CREATE_COMPLETE", [], [resource("a", "CREATE_COMPLETE", "t")])
    run = stacks.StackRun(service, "web")  # type: ignore[arg-type]
    run.delete({"stack_name": "web", "id": "S"})
    run.watch("DELETE_COMPLETE")
    assert "── a  T  DELETE_COMPLETE" in capsys.readouterr().out


def test_a_tree_names_the_resources_that_require_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    needed = resource("server-1", "CREATE_COMPLETE", "t") | {"required_by": ["slot-3", "slot-2"]}
    shown = watch(Service(("UPDATE_COMPLETE", [], [needed])), capsys)
    assert "── server-1  T  CREATE_COMPLETE  required by slot-2, slot-3" in shown


def test_a_pause_is_shown_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    began = event(1, "a", "UPDATE_IN_PROGRESS", "t") | {"resource_status_reason": "state changed"}
    pause = event(2, "a", "UPDATE_IN_PROGRESS", "t") | {"resource_status_reason": "it is paused"}
    shown = watch(Service(("UPDATE_COMPLETE", [began, pause], [])), capsys)
    assert shown.count("a: UPDATE_IN_PROGRESS\n") == 1
    assert shown.count("a: UPDATE_IN_PROGRESS: it is paused\n") == 1


def test_what_failed_in_a_complete_stack_is_named_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    member = resource("1", "CREATE_FAILED", "t") | {
        "links": [{"rel": "stack", "href": "http://h/v1/p/stacks/web-g/B"}],
        "resource_status_reason": "no agent",
    }
    rows = [resource("g", "UPDATE_COMPLETE", "B"), member]
    shown = watch(Service(("UPDATE_COMPLETE", [], rows)), capsys)
    assert shown.splitlines()[-1] == "web is complete, but g/1 failed: no agent"


def test_a_service_that_is_away_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service(
        refusal(None), refusal(503), refusal(None), ("UPDATE_IN_PROGRESS", [], []), refusal(None),
        ("UPDATE_COMPLETE", [], []),
    )  # fmt: skip
    shown = watch(service, capsys)
    assert shown.count("does not answer, and is asked again: Connection refused") == 2
    assert shown.count("answers again") == 2
    assert "web  UPDATE_COMPLETE" in shown


def test_what_the_service_refuses_ends_the_watch() -> None:
    run = stacks.StackRun(Service(refusal(403)), "web")  # type: ignore[arg-type]
    with pytest.raises(ApiError):
        run.watch_to_end()


def test_a_large_tree_shows_what_is_left_to_do() -> None:
    run = stacks.StackRun(Service(), "web")  # type: ignore[arg-type]
    states = ["CREATE_COMPLETE"] * 50 + ["CREATE_IN_PROGRESS", stacks.NOT_BEGUN]
    rows = [resource(f"r{number}", state, str(number)) for number, state in enumerate(states)]
    run._rows = {("S", row["resource_name"]): row for row in rows}
    shown = {"id": "S", "stack_name": "web", "stack_status": "CREATE_IN_PROGRESS"}
    labels = [str(each.label) for each in run._tree(shown, most_lines=40).children]
    assert labels[0] == "50 of 52 resources are complete"
    assert [label.split()[0] for label in labels[1:]] == ["r50", "r51"]
