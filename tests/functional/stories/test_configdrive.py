"""A config drive comes along with a deployment, and nobody reads it afterwards."""

from __future__ import annotations

import base64
import gzip
import json
import threading

import pytest

from bloomery.conductor import configdrive

SECRET = "hunter2-in-user-data"
OBJECT = {"user_data": SECRET, "meta_data": {"hostname": "web"}}


@pytest.fixture
def node(stage):
    return stage.bring_to("available")


def stored(stage, node):
    """The config drive as a driver gets it."""
    sealed = stage.site.node(node).instance_info["configdrive"]
    assert "$sealed" in sealed
    return stage.site.runtime.sealer.open({"configdrive": sealed})["configdrive"]


def test_an_object_becomes_an_image_that_is_sealed_and_masked(stage, node):
    stage.ask(node, "active", configdrive=OBJECT)
    shown = stage.wait_for(node, "active")
    image = gzip.decompress(base64.b64decode(stored(stage, node)))
    assert SECRET.encode() in image
    assert shown["instance_info"]["configdrive"] == "******"
    assert SECRET not in json.dumps(stage.site.everything(), default=str)
    stage.ask(node, "rebuild", configdrive={"user_data": "other"})
    stage.wait_for(node, "active")
    assert SECRET.encode() not in gzip.decompress(base64.b64decode(stored(stage, node)))
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["instance_info"] == {}


def test_an_image_is_built_by_a_worker_and_never_in_vain(stage, node, monkeypatch):
    """Whoever asked has its answer by then: a large one takes seconds."""
    answered, states, build = threading.Event(), [], configdrive.image_of

    def image_of(built_for, document):
        assert answered.wait(10), "the caller waits for the image"
        states.append(stage.site.node(node).provision_state)
        return build(built_for, document)

    monkeypatch.setattr(configdrive, "image_of", image_of)
    stage.ask(node, "active", configdrive=OBJECT)
    answered.set()
    stage.wait_for(node, "active")
    assert stage.try_to(node, "active", configdrive=OBJECT).status == 400
    assert states == ["deploying"]


@pytest.mark.parametrize("text", ["http://images/drive", "QUJD"])
def test_a_text_is_kept(stage, node, text):
    stage.ask(node, "active", configdrive=text)
    stage.wait_for(node, "active")
    assert stored(stage, node) == text


@pytest.mark.parametrize("empty", ["", {}, None])
def test_an_empty_one_keeps_what_is_there(stage, node, empty):
    stage.ask(node, "active", configdrive="QUJD")
    stage.wait_for(node, "active")
    stage.ask(node, "rebuild", configdrive=empty)
    stage.wait_for(node, "active")
    assert stored(stage, node) == "QUJD"


@pytest.mark.parametrize("drive", [OBJECT, "QUJD"])
def test_one_conductor_seals_and_builds_one_at_a_time(stage, node, monkeypatch, drive):
    lock = threading.Lock()
    monkeypatch.setattr(configdrive, "ONE_AT_A_TIME", lock)
    sealer, entered = stage.site.runtime.sealer, []

    def noted(method):
        def call(*args):
            entered.append(lock.locked())
            return method(*args)

        return call

    monkeypatch.setattr(sealer, "seal_whole", noted(sealer.seal_whole))
    monkeypatch.setattr(configdrive, "image_of", noted(configdrive.image_of))
    stage.ask(node, "active", configdrive=drive)
    stage.wait_for(node, "active")
    assert entered == [True] * (3 if drive is OBJECT else 1)


def test_one_that_is_too_large_moves_nothing(stage, node, monkeypatch):
    monkeypatch.setattr(configdrive, "MOST_MIB", 1)
    answer = stage.try_to(node, "active", configdrive={"user_data": "x" * (1 << 20)})
    assert answer.status == 400
    assert "configdrive takes at most 1 MiB" in answer.said
    assert stage.standing(node) == ("available", None)
    assert stage.site.node(node).instance_info == {}
