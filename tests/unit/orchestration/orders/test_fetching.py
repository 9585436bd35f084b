"""Fetching for tenants: what is refused, whatever the URL, the name and the server say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.orders import remote_templates
from bloomery.orchestration.orders.fetching import Fetcher
from tests.kit.servers import web
from tests.kit.waiting import wait_for

HOT = "heat_template_version: 2021-04-16\n"
NOT_PUBLIC = "not public"


def allowing(**more: Any) -> Fetcher:
    return Fetcher.of(timeout_s=more.pop("timeout_s", 20), networks=("127.0.0.0/8",), **more)


def leading_to(*addresses: str, networks: tuple[str, ...] = ()) -> Fetcher:
    """A fetcher whose names lead to ``addresses``, one after the other."""
    answers: Iterator[str] = iter(addresses)

    def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
        address = next(answers)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 0, "", (address, port))]

    plain = Fetcher.of(timeout_s=20, networks=networks)
    return Fetcher(timeout_s=plain.timeout_s, networks=plain.networks, resolve=resolve)


def refusal(fetcher: Fetcher, url: str) -> str:
    with pytest.raises(errors.TemplateUnreadable) as info:
        fetcher.text(url)
    return str(info.value)


def test_text_behind_a_url_is_fetched_once_an_operator_allows_its_network() -> None:
    with web.serving({"/a.yaml?b=1": web.text("größe: 1")}) as site:
        assert allowing().text(site.url("/a.yaml?b=1")) == "größe: 1"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "0.0.0.0", "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::",
        "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::1",
    ],
)  # fmt: skip
def test_no_address_is_reached_that_is_not_public(address: str) -> None:
    assert NOT_PUBLIC in refusal(leading_to(address), "http://web.example/a.yaml")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "[::ffff:7f00:1]"]
)
def test_no_spelling_of_this_machine_is_reached(host: str) -> None:
    with web.serving({"/a.yaml": web.text(HOT)}) as site:
        assert "Could not retrieve" in refusal(
            Fetcher.of(timeout_s=20), site.url("/a.yaml", host=host)
        )
        assert site.asked == []


def test_name_that_leads_elsewhere_after_a_redirect_is_looked_at_again() -> None:
    with web.serving({"/a": web.moved("/b"), "/b": web.text("secret")}) as site:
        rebinding = leading_to("127.0.0.1", "10.0.0.1", networks=("127.0.0.0/8",))
        assert NOT_PUBLIC in refusal(rebinding, site.url("/a", host="web.example"))
        assert site.asked == ["/a"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://web.example/a", "/a.yaml", "gopher:"])
def test_only_http_is_spoken(url: str) -> None:
    assert "only URLs of http and https" in refusal(allowing(), url)


@pytest.mark.parametrize("host", ["web\x17", "we b", "web\x7f"])
def test_host_of_no_server_is_refused(host: str) -> None:
    assert "a blank or a control character" in refusal(allowing(), f"https://{host}/a.yaml")


@pytest.mark.parametrize("onward", ["file:///etc/passwd", "ftp://web.example/", "gopher://x/"])
def test_redirect_to_another_scheme_is_refused(onward: str) -> None:
    with web.serving({"/a": web.moved(onward)}) as site:
        assert "only URLs of http and https" in refusal(allowing(), site.url("/a"))


def test_redirect_is_followed() -> None:
    with web.serving({"/a": web.moved("b/c", 301), "/b/c": web.text(HOT)}) as site:
        assert allowing().text(site.url("/a")) == HOT


def test_redirects_come_to_an_end() -> None:
    with web.serving({"/a": web.moved("/a")}) as site:
        assert "redirects more than 5 times" in refusal(allowing(), site.url("/a"))
        assert len(site.asked) == 6


def test_text_over_the_limit_is_not_read_to_its_end() -> None:
    enough = threading.Event()
    with web.serving({"/a": web.dripping(enough, b"#" * 9_000)}) as site:
        fetcher = allowing(limits=Limits(template_bytes=20_000))
        assert "more than 20000 bytes" in refusal(fetcher, site.url("/a"))
        enough.set()


def test_server_that_drips_is_left_when_time_is_over() -> None:
    enough = threading.Event()
    with web.serving({"/a": web.dripping(enough)}) as site:
        assert "longer than 0.3 s" in refusal(allowing(timeout_s=0.3), site.url("/a"))
        enough.set()


def test_server_that_drips_its_headers_is_left_when_time_is_over() -> None:
    enough = threading.Event()

    def answer(request: Any) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n")
        web.dripping(enough, b"X: y\r\n")(request)

    with web.serving({"/a": answer}) as site:
        assert "longer than 0.3 s" in refusal(allowing(timeout_s=0.3), site.url("/a"))
        enough.set()


@pytest.mark.parametrize(
    "reply",
    [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: y",
     b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n# half"],
)  # fmt: skip
def test_text_that_was_cut_off_is_not_taken_for_a_template(reply: bytes) -> None:
    with web.serving({"/a": web.raw(reply)}) as site:
        assert "the connection broke off" in refusal(allowing(), site.url("/a"))


def test_servers_that_drip_leave_threads_for_others() -> None:
    enough = threading.Event()
    with web.serving({"/slow": web.dripping(enough), "/a": web.text(HOT)}) as site:
        fetcher = allowing(at_once=1)
        slow = threading.Thread(target=fetcher.text, args=[site.url("/slow")])
        slow.start()
        wait_for(lambda: site.asked, "the slow one to be asked for")
        with pytest.raises(errors.FetchesBusy) as info:
            fetcher.text(site.url("/a"))
        assert info.value.status == 503
        enough.set()
        slow.join()
        assert fetcher.text(site.url("/a")) == HOT


def test_packed_answer_is_refused_without_being_unpacked() -> None:
    with web.serving({"/a": web.text(b"\x1f\x8b", Content_Encoding="gzip")}) as site:
        assert "packs its answer" in refusal(allowing(), site.url("/a"))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (web.text("", 404), "the server answers 404"),
        (web.text("", 500), "the server answers 500"),
        (web.text(b"\xff\xfe"), "not UTF-8"),
    ],
)
def test_what_is_no_text_is_said_so(answer: web.Answer, why: str) -> None:
    with web.serving({"/a": answer}) as site:
        assert why in refusal(allowing(), site.url("/a"))


def test_server_that_speaks_no_http_is_said_so() -> None:
    def answer(request: Any) -> None:
        request.wfile.write(b"SSH-2.0-x\r\n")

    with web.serving({"/a": answer}) as site:
        assert "does not speak HTTP" in refusal(allowing(), site.url("/a"))


def test_secrets_of_a_url_are_not_told() -> None:
    message = refusal(allowing(), "http://user:hunter2@web.example/a.yaml?token=hunter3")
    assert "hunter" not in message
    assert "web.example/a.yaml" in message


def test_network_that_is_none_keeps_the_service_from_starting() -> None:
    with pytest.raises(errors.CannotStart, match="template_fetch_networks"):
        Fetcher.of(timeout_s=60, networks=("everything",))


# ----------------------------------------------------------------------------- nested templates


def document(resources: Any) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def nested(url: str) -> str:
    return f"{HOT}resources: {{deeper: {{type: '{url}'}}}}"


def test_nested_templates_are_fetched_with_those_that_they_name() -> None:
    answers: dict[str, web.Answer] = {"/inner.yaml": web.text(HOT)}
    with web.serving(answers) as site:
        answers["/outer.yaml"] = web.text(nested(site.url("/inner.yaml")))
        group = {"count": 2, "resource_def": {"type": site.url("/outer.yaml")}}
        resources = {"all": {"type": "OS::Heat::ResourceGroup", "properties": group}}
        completed = remote_templates.completed(document(resources), {}, {}, allowing())
        assert set(completed.files) == {site.url("/outer.yaml"), site.url("/inner.yaml")}
        assert completed.unread == {}


def test_templates_of_the_registry_are_fetched() -> None:
    with web.serving({"/server.yaml": web.text(HOT)}) as site:
        registry = {"resources": {"web": {"My::Server": site.url("/server.yaml")}}}
        completed = remote_templates.completed(
            document({}), {"resource_registry": registry}, {}, allowing()
        )
        assert completed.files == {site.url("/server.yaml"): HOT}


def test_files_that_came_are_not_fetched() -> None:
    with web.serving({}) as site:
        files = {site.url("/a.yaml"): HOT, "run.sh": "curl http://web.example/resources"}
        resources = {"a": {"type": site.url("/a.yaml")}}
        completed = remote_templates.completed(document(resources), {}, files, allowing())
        assert completed.files == files
        assert site.asked == []


def test_template_that_cannot_be_fetched_is_kept_with_the_reason() -> None:
    with web.serving({}) as site:
        resources = {"a": {"type": site.url("/a.yaml")}}
        completed = remote_templates.completed(document(resources), {}, {}, allowing())
        assert completed.unread == {site.url("/a.yaml"): "the server answers 404"}
        assert completed.files == {}


def test_chain_of_templates_comes_to_an_end() -> None:
    answers: dict[str, web.Answer] = {}
    with web.serving(answers) as site:
        for at in range(30):
            answers[f"/{at}"] = web.text(nested(site.url(f"/{at + 1}")))
        with pytest.raises(errors.RequestLimitExceeded, match="20 templates"):
            remote_templates.completed(
                document({"a": {"type": site.url("/0")}}), {}, {}, allowing()
            )
        assert len(site.asked) == 20
