"""Files that users name are looked at by the order, and by validate, before any machine boots."""

from __future__ import annotations

import contextlib
import threading

import pytest

from tests.functional.redfish.agents.conftest import INSTANCE
from tests.kit.servers import registry, web

NO_SERVER = "http://127.0.0.1:1/file"
PAGE = web.text("<!DOCTYPE html><title>Sign in</title>", Content_Type="text/html; charset=utf-8")
SUMS = f"{'ab' * 32}  os.qcow2\n"


def get_only(request):
    """Answer as storage with signed URLs does."""
    web.text("image" if request.command == "GET" else "", 200 if request.command == "GET" else 403)(
        request
    )


FILES = {
    "/os.qcow2": web.text("image"),
    "/signed": get_only,
    "/moved": web.moved("/os.qcow2"),
    "/gone": web.text("", 404),
    "/forbidden": web.text("", 403),
    "/loop": web.moved("/loop"),
    "/page": PAGE,
    "/empty": web.text(""),
    "/sums": web.text(SUMS),
    "/other-sums": web.text("ab" * 32 + "  other.qcow2\n" + "cd" * 32 + "  third.qcow2\n"),
}
GOOD = {"image_source": "/os.qcow2"}
ROWS = {  # what instance_info and the order name, and the words of the refusal; None: it is taken
    "a good image": (GOOD, None),
    "an image whose server refuses HEAD": ({"image_source": "/signed"}, None),
    "an image that moved": ({"image_source": "/moved"}, None),
    "an image that is gone": ({"image_source": "/gone"}, ("image_source", "/gone", "HTTP 404")),
    "a forbidden image": ({"image_source": "/forbidden"}, ("image_source", "HTTP 403")),
    "an image in a circle": ({"image_source": "/loop"}, ("image_source", "in a circle")),
    "a page": ({"image_source": "/page"}, ("image_source", "web page")),
    "an empty image": ({"image_source": "/empty"}, ("image_source", "empty")),
    "no server": ({"image_source": NO_SERVER}, ("image_source", "takes no connection")),
    "a good file of checksums": (GOOD | {"image_os_hash_value": "/sums"}, None),
    "no file of checksums": (
        GOOD | {"image_os_hash_value": "/gone"}, ("image_os_hash_value", "HTTP 404"),
    ),
    "a file of checksums in a circle": (
        GOOD | {"image_os_hash_value": "/loop"}, ("image_os_hash_value", "in a circle"),
    ),
    "a file with other checksums": (
        GOOD | {"image_os_hash_value": "/other-sums"}, ("no checksum of os.qcow2",),
    ),
    "a config drive of no server": (
        GOOD | {"configdrive": NO_SERVER}, ("configdrive", "takes no connection"),
    ),
    "a config drive that is gone": (GOOD | {"configdrive": "/gone"}, ("configdrive", "HTTP 404")),
}  # fmt: skip


@pytest.fixture(scope="module")
def site():
    with web.serving(FILES) as site:
        yield site


@pytest.fixture
def strict(stage):
    stage.configure("conductor", preflight_timeout=5)
    return stage


def order(stage, node, info, site):
    named = {k: site.url(v) if v.startswith("/") else v for k, v in info.items()}
    drive = {k: named.pop(k) for k in ("configdrive",) if k in named}
    stage.patch(node, instance_info=INSTANCE | named)
    return stage.try_to(node, "active", **drive)


def test_the_order_and_validate_tell_what_nobody_can_fetch(strict, available, site, machine):
    before, wrong = len(machine.system.happened), {}
    for name, (info, words) in ROWS.items():
        answer = order(strict, available, info, site)
        if words is None:
            strict.wait_until_free(available)
            strict.site.set(available, provision_state="available", target_provision_state=None)
            accepted = answer.status == 202
        else:
            accepted = answer.status == 400 and all(word in answer.said for word in words)
        if "configdrive" not in info:
            result = strict.api.get(f"/v1/nodes/{available}/validate").json["deploy"]
            fits = result["result"] is (words is None)
            accepted &= fits and all(word in result["reason"] for word in words or ())
        if not accepted:
            wrong[name] = (answer.status, answer.body)
        if words:
            assert strict.show(available)["provision_state"] == "available", name
            assert len(machine.system.happened) == before, f"{name}: the machine was touched"
        before = len(machine.system.happened)
    assert wrong == {}


def test_an_image_of_a_registry_is_looked_at(strict, available):
    with registry.serving() as images:
        info = INSTANCE | {"image_source": images.url("lab/other:12"), "image_disk_format": "raw"}
        strict.patch(available, instance_info=info)
        answer = strict.try_to(available, "active")
    assert (answer.status, "image_source" in answer.said) == (400, True), answer.said


def test_an_iso_that_nobody_can_fetch_is_refused(strict, available, site):
    strict.patch(available, deploy_interface="ramdisk")
    for path, words in (("/gone", "HTTP 404"), ("/page", "web page")):
        strict.patch(available, instance_info={"boot_iso": site.url(path)})
        answer = strict.try_to(available, "active")
        assert (answer.status, "boot_iso" in answer.said, words in answer.said) == (400, True, True)


@pytest.mark.parametrize(
    "url", ["x", "", "file:///etc/passwd", "ftp://h/a.iso", "http://", "http://[::1", "/gone"]
)
def test_virtual_media_refuses_at_once_what_no_bmc_can_fetch(strict, node, site, url):
    url = site.url(url) if url.startswith("/") else url
    body = {"device_type": "cdrom", "image_url": url}
    answer = strict.api.post(f"/v1/nodes/{node}/vmedia", body)
    assert (answer.status, "image_url" in answer.said) == (400, True), answer.body
    assert strict.show(node)["last_error"] is None


@pytest.mark.parametrize("url", ["ftp://h/drive", "file:///etc/passwd", "http://"])
def test_a_config_drive_of_another_scheme_is_refused(strict, available, url):
    answer = strict.try_to(available, "active", configdrive=url)
    assert (answer.status, "configdrive" in answer.said) == (400, True)


def test_a_server_that_says_nothing_costs_the_option(strict, available):
    strict.configure("conductor", preflight_timeout=1)
    with contextlib.ExitStack() as until_asked, web.serving({"/mute": _mute(until_asked)}) as site:
        answer = order(strict, available, {"image_source": "/mute"}, site)
        until_asked.close()
    assert (answer.status, "in time" in answer.said) == (400, True), answer.said


def _mute(until_asked):
    is_over = threading.Event()
    until_asked.callback(is_over.set)
    return lambda request: is_over.wait(20)
