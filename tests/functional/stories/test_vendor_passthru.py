"""Methods of vendor interfaces: of nodes and of drivers, at once or in the background."""

from __future__ import annotations

import threading

import pytest

from bloomery.api.versions import MAX
from bloomery.conductor import recovery, runner, vendor_passthru
from bloomery.drivers import base, vendor_methods
from bloomery.drivers.fake.hardware import FakeVendor
from bloomery.drivers.registry import Registry
from bloomery.model.step import Step
from tests.kit.machines.scripted import Script
from tests.kit.servers import site as kit
from tests.kit.waiting import wait_for

BAR = {"bar": "meow"}


def path(node, method=""):
    return f"/v1/nodes/{node}/vendor_passthru" + (f"/{method}" if method else "")


def call(stage, node, method, info=None, http="POST", **more):
    answer = stage.api.ask(http, path(node, method), info, **more)
    if answer.status == 202:
        stage.wait_until_free(node)
    return answer


class Acme(FakeVendor):
    """What a vendor could offer."""

    def __init__(self, conf):
        super().__init__(conf)
        self.may_end, self.runs, self.asked = threading.Event(), threading.Event(), []

    @vendor_methods.passthru(("GET",), async_call=False, attach=True)
    def screenshot(self, task: base.DriverTask) -> bytes:
        return b"\x89PNG\r\n"

    @vendor_methods.passthru(("GET", "DELETE"), async_call=False, method="log")
    def read_log(self, task: base.DriverTask, lines: int = 1) -> list[str]:
        return ["x"] * lines

    @vendor_methods.passthru(("PATCH",), async_call=False)
    def note(self, task: base.DriverTask, text: str) -> None:
        task.node.driver_internal_info["note"] = text

    @vendor_methods.passthru(("POST",), require_exclusive_lock=False)
    def beside(self, task: base.DriverTask, **info: object) -> None:
        self.runs.set()
        assert self.may_end.wait(20)
        raise RuntimeError("it broke with password=correct-horse")

    @vendor_methods.driver_passthru(("GET",), async_call=False, description="Say the word.")
    def echo(self, word: str) -> str:
        return word

    @vendor_methods.driver_passthru(("POST",))
    def later(self, word: str = "") -> None:
        self.asked.append(word)


@pytest.fixture
def acme():
    return Acme(kit.conf())


@pytest.fixture
def site(make_stage, acme):
    """A stage whose fake hardware has Acme's vendor interface."""
    loaded = Script().registry()
    interfaces = dict(loaded.interfaces) | {"vendor": {"fake": acme}}
    acme.name = "fake"
    return make_stage(registry=Registry(loaded.types, interfaces, dict.fromkeys(interfaces)))


# ---------------------------------------------------------------------------------- fake hardware


@pytest.mark.parametrize("version", [1, MAX])
def test_methods_are_listed(stage, version):
    methods = stage.api.get(path(stage.enrol(), "methods"), version=version).json
    assert {name: (m["async"], m["require_exclusive_lock"]) for name, m in methods.items()} == {
        "second_method": (True, True),
        "third_method_sync": (False, True),
        "fourth_method_shared_lock": (True, False),
        "log_passthrough": (True, True),
    }
    assert set(methods["second_method"]) == {
        "async", "attach", "description", "http_methods", "require_exclusive_lock",
    }  # fmt: skip
    assert all(m["http_methods"] == ["POST"] and not m["attach"] for m in methods.values())


@pytest.mark.parametrize(("bar", "told"), [("meow", b"true"), ("woof", b"false")])
def test_a_synchronous_method_answers_with_bare_json(stage, bar, told):
    node = stage.enrol()
    answer = call(stage, node, "third_method_sync", {"bar": bar})
    assert (answer.status, answer.body) == (200, told)
    assert answer.headers["content-type"] == "application/json"


def test_a_method_may_be_named_in_the_query(stage):
    answer = stage.api.post(f"{path(stage.enrol())}?method=third_method_sync", BAR)
    assert (answer.status, answer.body) == (200, b"true")


@pytest.mark.parametrize("method", ["second_method", "log_passthrough"])
def test_an_asynchronous_method_is_a_flow(stage, method):
    node = stage.enrol()
    answer = call(stage, node, method, BAR | {"others": 1})
    assert (answer.status, answer.body, "location" in answer.headers) == (202, b"", False)
    assert "content-type" not in answer.headers
    assert stage.steps(node, "vendor") == [("vendor.passthru", "done")]
    assert stage.show(node)["last_error"] is None


@pytest.mark.parametrize(
    ("http", "method", "info", "told"),
    [
        ("POST", "unknown", {}, "No handler for method unknown"),
        ("GET", "second_method", BAR, "does not support HTTP GET: it takes POST"),
        ("POST", "second_method", {}, "Parameter 'bar' not passed to method 'second_method'."),
        ("POST", "third_method_sync", {"bar": ""}, "Parameter 'bar' not passed to method"),
        ("POST", "", BAR, "Missing mandatory parameter: method"),
        ("POST", "second_method", [BAR], "the body must be a JSON object"),
        ("POST", "second_method", {"bar": {"$sealed": "x"}}, "'$sealed'"),
    ],
)
def test_a_call_that_cannot_be_is_refused_before_anything_is_done(stage, http, method, info, told):
    node = stage.enrol()
    answer = call(stage, node, method, info, http)
    assert (answer.status, answer.form, told in answer.said) == (400, "first", True), answer.said
    assert stage.steps(node) == []


def test_a_method_that_is_not_named_is_missed_before_the_node_is(stage):
    answer = stage.api.delete("/v1/nodes/unknown/vendor_passthru")
    assert (answer.status, answer.said) == (400, "Missing mandatory parameter: method")
    assert stage.api.delete("/v1/nodes/unknown/vendor_passthru/x").status == 404


def test_unknown_arguments_of_the_query_are_refused(stage):
    answer = stage.api.post(f"{path(stage.enrol(), 'log_passthrough')}?bar=1", {})
    assert (answer.status, "Unexpected arguments: bar" in answer.said) == (400, True)


def test_a_failure_in_the_background_is_told(stage):
    node = stage.enrol({"fail": ["vendor.second_method"]})
    assert call(stage, node, "second_method", BAR).status == 202
    sentence = stage.show(node)["last_error"]
    assert "vendor.second_method was told to fail" in sentence
    assert stage.errors(node) == [sentence]


def test_arguments_are_sealed_in_rows(stage):
    node = stage.enrol()
    call(stage, node, "second_method", {"bar": "correct-horse"})
    assert "correct-horse" not in str(stage.site.everything())


def test_a_busy_node_takes_none_but_shared_calls(stage):
    node = stage.enrol()
    stage.site.set(node, reservation="somebody")
    at_once = {"headers": {"Prefer": "wait=0"}}
    for method in ("second_method", "third_method_sync"):
        assert stage.api.post(path(node, method), BAR, **at_once).status == 409
    assert stage.api.post(path(node, "fourth_method_shared_lock"), BAR, **at_once).status == 202
    stage.site.set(node, reservation=None)


def interrupted(stage, method, *, resumable):
    """A node whose conductor died in the middle of a call."""
    node = stage.enrol()
    with stage.site.acquire(node) as task:
        info = stage.site.runtime.sealer.seal_whole(BAR)
        args = {"method": method, "http_method": "POST", "info": info}
        step = Step(
            interface="vendor", step="passthru", args=args, internal=True, resumable=resumable
        )
        task.save(*runner.plan(task, vendor_passthru.VENDOR, [step]).opening)
    recovery.adopt(stage.site.runtime, node)
    stage.wait_until_free(node)
    return node


def test_a_call_that_a_crash_cut_off_fails_by_name(stage):
    node = interrupted(stage, "second_method", resumable=False)
    assert stage.steps(node, "vendor") == [("vendor.passthru", "failed")]
    sentence = stage.show(node)["last_error"]
    assert "it was not repeated because it may not be run twice" in sentence
    assert sentence.endswith("(method second_method)")


def test_a_call_that_may_be_repeated_is_after_a_crash(stage):
    node = interrupted(stage, "log_passthrough", resumable=True)
    assert stage.steps(node, "vendor") == [("vendor.passthru", "done")]
    assert stage.show(node)["last_error"] is None


# ------------------------------------------------------------------------------ another vendor's


def test_bytes_are_sent_as_they_are(site):
    answer = call(site, site.enrol(), "screenshot", http="GET")
    assert (answer.status, answer.body) == (200, b"\x89PNG\r\n")
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("http", ["GET", "DELETE"])
def test_any_http_method_may_call(site, http):
    assert call(site, site.enrol(), "log", {"lines": 2}, http).json == ["x", "x"]


def test_arguments_that_the_method_lacks_are_refused(site):
    answer = call(site, site.enrol(), "log", {"pages": 2}, "GET")
    assert (answer.status, answer.said) == (
        400, "Parameter 'pages' is none of method 'log': it takes lines",
    )  # fmt: skip


def test_what_a_synchronous_method_changes_is_kept(site):
    node = site.enrol()
    answer = call(site, node, "note", {"text": "hi"}, "PATCH")
    assert (answer.status, answer.body) == (200, b"null")
    assert site.show(node)["driver_internal_info"]["note"] == "hi"


def test_a_shared_call_runs_beside_a_holder_and_tells_of_its_failure(site, acme):
    node = site.enrol()
    assert site.api.post(path(node, "beside"), {}).status == 202
    assert acme.runs.wait(20)
    assert site.power(node, "power on")["power_state"] == "power on"
    acme.may_end.set()
    wait_for(lambda: site.show(node)["last_error"], "the failure to be told")
    site.wait_until_free(node)
    sentence = site.show(node)["last_error"]
    assert sentence.startswith("vendor method beside failed: ")
    assert "correct-horse" not in sentence
    assert site.errors(node) == [sentence]


# -------------------------------------------------------------------------------------- drivers


DRIVER = "/v1/drivers/fake-hardware/vendor_passthru"


def test_methods_of_a_driver_are_called_without_a_node(site, acme):
    methods = site.api.get(f"{DRIVER}/methods").json
    assert methods["echo"] == {
        "async": False, "attach": False, "description": "Say the word.", "http_methods": ["GET"],
        "require_exclusive_lock": False,
    }  # fmt: skip
    assert set(methods) == {"echo", "later"}
    answer = site.api.ask("GET", f"{DRIVER}?method=echo", {"word": "hi"})
    assert (answer.status, answer.json) == (200, "hi")
    answer = site.api.post(f"{DRIVER}/later", {"word": "now"})
    assert (answer.status, answer.body) == (202, b"")
    wait_for(lambda: acme.asked == ["now"], "the method to run")


@pytest.mark.parametrize(
    ("where", "status", "told"),
    [
        (f"{DRIVER}/unknown", 400, "No handler for method unknown"),
        (DRIVER, 400, "Missing mandatory parameter: method"),
        (f"{DRIVER}/later", 400, "HTTP GET"),
        ("/v1/drivers/none/vendor_passthru/x", 404, "none"),
        ("/v1/drivers/none/vendor_passthru/methods", 404, "none"),
    ],
)
def test_a_driver_refuses_by_name(site, where, status, told):
    answer = site.api.get(where)
    assert (answer.status, answer.form, told in answer.said) == (status, "first", True)
