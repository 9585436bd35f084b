"""How a task of a BMC goes: it runs, ends, is forgotten, or fails with the BMC's reasons."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sushy

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.bmc.state import BmcState
from bloomery.drivers.redfish import tasks
from bloomery.drivers.redfish.session import SessionAuth

WHAT = "change the volumes"


def bmc(answer):
    return SimpleNamespace(root=SimpleNamespace(_conn=SimpleNamespace(get=lambda _path: answer)))


def told(status, **task):
    return SimpleNamespace(status_code=status, content=b"x", json=lambda: task)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (told(202), "Running"),
        (told(202, TaskState="Pending"), "Pending"),
        (told(200, TaskState="Running"), "Running"),
        (told(200, TaskState="Completed", TaskStatus="Warning"), tasks.COMPLETED),
        (told(200, Id="the result itself"), tasks.COMPLETED),
        (SimpleNamespace(status_code=204, content=b""), tasks.COMPLETED),
    ],
)
def test_a_task_runs_or_ends(answer, state):
    assert tasks.state(bmc(answer), "/t", WHAT) == state


def test_a_task_that_is_forgotten_has_ended():
    def get(_path):
        answer = SimpleNamespace(status_code=404, json=dict, text="", headers={})
        raise sushy.exceptions.ResourceNotFoundError("GET", "/t", answer)

    gone = SimpleNamespace(root=SimpleNamespace(_conn=SimpleNamespace(get=get)))
    assert tasks.state(gone, "/t", WHAT) == tasks.COMPLETED


@pytest.mark.parametrize(
    "facts", [{"TaskState": "Exception"}, {"TaskState": "Completed", "TaskStatus": "Critical"}]
)
def test_a_task_that_fails_says_why_without_secrets(facts):
    failed = told(200, Messages=[{"Message": "drive 3 of hunter2 is bad"}, None], **facts)
    with pytest.raises(errors.StepFailure, match=r"change the volumes: drive 3 of \*{6} is bad"):
        tasks.state(bmc(failed), "/t", WHAT, ("hunter2",))


@pytest.mark.parametrize(
    ("location", "path"),
    [("http://bmc/redfish/v1/t/1", "/redfish/v1/t/1"), ("/t/1", "/t/1"), ("http://[", None)],
)
def test_a_task_is_known_by_the_path_of_its_location(location, path):
    answer = SimpleNamespace(status_code=202, content=b"", headers={"Location": location})
    assert tasks.monitor(answer) == path


ENDED = ("DELETE", "/s/1")


@pytest.mark.parametrize(
    ("location", "ended"),
    [("http://bmc/s/1", [ENDED]), ("/s/1", [ENDED]), ("http://[", [])],
)
def test_a_session_is_ended_by_the_path_of_its_location(location, ended):
    answer = SimpleNamespace(headers={"X-Auth-Token": "t", "Location": location})
    requests, bmc = [], BmcState("http://bmc", Conf(), lambda: 0.0)
    account = SimpleNamespace(root="/", username="x", password="x")
    wire = SimpleNamespace(call=SimpleNamespace(bmc=bmc), token=None, hang_up=lambda: None)
    auth = SessionAuth(account, wire)
    auth._connector = SimpleNamespace(
        post=lambda url, data: answer, _once=lambda *request: requests.append(request)
    )
    auth._open_session()
    assert bmc.sessions == 1
    auth.give_back()
    assert (requests, bmc.sessions) == (ended, 0)
