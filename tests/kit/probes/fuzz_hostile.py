"""Requests that nobody should send: wrong values at every place, and bytes that are hardly HTTP.

``misplace`` goes through every place that the declarations know, one wrong value after the other;
``throw`` draws whole requests whose parts have each gone wrong, or not.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from urllib.parse import quote, quote_from_bytes

import hypothesis
from hypothesis import strategies as st

from bloomery.api import layers, routes
from bloomery.api.declare import Endpoint
from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.conf.web import Cors, Healthcheck, OsloMiddleware
from bloomery.model.node import FIELDS as NODE_FIELDS
from bloomery.model.nouns import BY_NAME
from tests.kit.probes import fuzzing

ENDPOINTS = [(each.method, each.path, each) for each in routes.ENDPOINTS]
DEEP = json.loads("[" * 20 + "]" * 20)
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 1.5, -0.0,
    1e308, "", " ", "x", "x" * 300, "x" * 5000, "\0", "a\0b", "\ud800", "a\udfff", "\U0001f600",
    "\u202e\u0000", "\n", "true", "None", "1", "1e3", "{node}{0}%s%n", "' OR 1=1 --", "../..", "é",
    "00000000-0000-0000-0000-000000000000", "52:54:00:00:00:01", "power on", "active", "manage",
    [], {}, [[]], [None], [{}], ["x"], ["CUSTOM_A", "CUSTOM_A"], ["x"] * 200, DEEP,
    {"": None}, {"x": None}, {"a": {"b": {"c": [1]}}}, {"$sealed": "x"}, {"$ref": "#"},
    {"x/y~z": 1}, {"\0": 1}, {"\ud800": 1},
    [{"interface": "deploy", "step": "deploy", "args": {}, "priority": 1}],
    [{"interface": {}, "step": [], "args": 5, "priority": {}}],
    [{"op": "set-attribute", "args": {"path": "extra/x", "value": "{node.__class__}"}}],
    [{"op": "eq", "args": {"values": ["{0}", "{inventory[x]:>99999999}"]}, "multiple": "none"}],
    [{"op": "matches", "args": ["{item}", "(a+)+$"], "loop": {"x": [DEEP]}}],
    [{"op": [], "args": 5, "loop": 7}], {"op": "fail", "args": {"msg": "no"}},
    {"fake": {"fail": {"x": 1}}}, {"fake": {"delay": {"deploy": 1e308}}}, {"fake": []},
    {"capabilities": 5}, {"cpu_arch": [], "memory_mb": "x", "local_gb": -1}, {"traits": {}},
]  # fmt: skip
RAW = [
    b"null", b"5", b'"x"', b"{", b"[" * 5000, b'{"a":' * 3000, b"[" * 20 + b"]" * 20, b"\xff\xfe",
    b"\xef\xbb\xbf{}", b"{}{}", b'{"a":1,"a":2}', b'{"driver":"x","driver":{}}', b"NaN", b"-",
    b'{"target":NaN}', b'{"target":Infinity}', b'{"target":1e999}', b'{"target":"\\ud800"}',
    b'{"target":"\xed\xa0\x80"}', b'{"\\u0000":"\\u0000"}', b"\0", b" " * 70000, b"9" * 5000,
    b"-" + b"9" * 20, b'{"target": "active"', b"target=active", b"[]", b"{}", b"[null]", b"[[]]",
    b'[{"op":"add"}]', b'[{"op":"add","path":"","value":1}]', b'[{"op":"move","path":"/a"}]',
    b'[{"op":"remove","path":"/extra/0/-/~2"}]', b'[{"op":"add","path":"//","value":[]}]',
]  # fmt: skip
BITS = [b"\0", b"\xff", b'"', b"{", b"]", b"\\u0000", b"\\ud800", b",", b"e9"]
SEGMENTS = [
    "", ".", "..", "%00", "a%00b", "%ff", "%ed%a0%80", "%F0%9F%98%80", "a" * 255, "a" * 256,
    "a" * 9000, "%2F", "%2e%2e%2f", "{node}", "%7Bnode%7D", "%25s", "' OR 1=1", "~", "-", "_",
    "detail", "states", "validate", "x.json", ".json", "00000000-0000-0000-0000-000000000000",
    "0" * 32, "urn:uuid:00000000-0000-0000-0000-000000000000", "__class__", "_route", "get", "\t",
]  # fmt: skip
HEADERS: dict[str, list[str]] = {
    "HTTP_X_OPENSTACK_IRONIC_API_VERSION": [
        "", "latest", "LATEST", "1", "1.", ".1", "1.1", "1.0", "1.9", "1.37", f"1.{MAX + 1}", "2.1",
        "1.99999999999999999999", "-1.-1", "1.1.1", "x", "\xff", "1.\u0661", f"1.{MAX}\0",
        "1.1, 1.2",
    ],
    "HTTP_OPENSTACK_API_VERSION": [
        "baremetal", "baremetal 1.50", "baremetal latest", "compute 2.1", ",,,", "baremetal x y z",
        "baremetal 9.9", "\xff baremetal", "baremetal 1.1," * 500,
    ],
    "HTTP_ACCEPT": [
        "", "*/*", "text/html", "application/xml;q=0", "application/json;q=9", ",", ";;;", "\xff",
        "application/*", "a/b/c", "*", "application/json;q=x", "/" * 300,
    ],
    "CONTENT_TYPE": [
        "", "text/plain", "application/json; charset=utf-16", "application/x-www-form-urlencoded",
        "multipart/form-data", "multipart/form-data; boundary=x", "\xff", "json", ";", "/",
        "application/json;charset=nothing", "APPLICATION/JSON",
    ],
    "CONTENT_LENGTH": ["", "0", "-1", "1", "3", "99999", "9" * 30, "x", "1e3", "+5", " 5 ", "²"],
    "HTTP_TRANSFER_ENCODING": ["chunked", "gzip, chunked", "x"],
    "HTTP_PREFER": ["wait=0", "wait=-1", "wait=x", "wait=", "respond-async", "\xff"],
    "HTTP_AUTHORIZATION": ["Basic", "Basic !!!", "Basic Og==", "Bearer x", "\xff", "Basic \xff"],
    "HTTP_HOST": ["", "\xff", "a" * 3000, "evil/..//", "[::1", "x:y:z", "a b", "{0}%s"],
    "HTTP_ORIGIN": ["null", "*", "https://dashboard.example", "\xff", "a" * 3000],
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD": ["PATCH", "", "\xff"],
    "HTTP_FORWARDED": [
        "", "for=unknown", ";;=", "host=;proto=", 'for="[::1]:80";host="a:b:c"', "\xff", "=" * 900,
    ],
    "HTTP_X_FORWARDED_PROTO": ["https", "javascript", ",", "\xff"],
    "HTTP_X_FORWARDED_HOST": ["", "a, b", "\xff", "[::1", '"'],
    "HTTP_X_FORWARDED_FOR": [
        "10.1.2.3, 192.0.2.1", "[2001:db8::1]:99", "unknown", "_x", "1.2.3.4:5", "::1", "\xff",
    ],
    "HTTP_X_FORWARDED_PREFIX": ["/", "//", "x/../y", "\xff", ","],
    "HTTP_X_HTTP_METHOD_OVERRIDE": ["DELETE", "\xff"],
    "HTTP_IF_NONE_MATCH": ["*", "\xff"],
    "HTTP_RANGE": ["bytes=0-0", "bytes=x"],
    "HTTP_COOKIE": ["a=b; \xff", "=;=;"],
    "HTTP_X_OPENSTACK_REQUEST_ID": ["req-x", "\xff", "a" * 3000],
}  # fmt: skip
RIGHT: dict[str, Any] = {
    "driver": "fake-hardware", "address": "52:54:00:99:99:99", "target": "power on",
    "boot_device": "pxe", "id": "vif-1", "enabled": True, "type": "iqn", "connector_id": "x",
    "volume_type": "iscsi", "volume_id": "v", "boot_index": 0,
    "name": "CUSTOM_F", "state": "on", "device_type": "cdrom",
    "image_url": "http://images.test/a.iso",
    "callback_url": "https://192.0.2.7:9999", "agent_token": "x", "agent_version": "11",
    "inventory": {"interfaces": [{"mac_address": "52:54:00:99:99:98"}]},
    "events": [
        {
            "event": "network.bind_port", "port_id": "00000000-0000-4000-8000-000000000001",
            "mac_address": "52:54:00:99:99:99", "status": "ACTIVE",
        },
    ],
    "actions": [{"op": "fail", "args": {"msg": "no"}}],
    "steps": [{"interface": "power", "step": "reboot", "args": {}, "priority": 1}],
}  # fmt: skip
AIMS = {"active": 2, "clean": 1, "service": 3, "rescue": 3, "rebuild": 3, "inspect": 1}
TEXT = st.text(max_size=9)
JSON = st.recursive(
    st.sampled_from(VALUES) | TEXT | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
LAYERED = Conf(
    cors=Cors(allowed_origin=("https://dashboard.example",)),
    healthcheck=Healthcheck(enabled=True, allowed_source_ranges=("10.0.0.0/8", "2001:db8::/32")),
    oslo_middleware=OsloMiddleware(enable_proxy_headers_parsing=True),
)
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "X" * 200]


# ------------------------------------------------------------------- a wrong value everywhere


def misplace(target: fuzzing.Target, lots: random.Random, most: int) -> None:
    """Put ``most`` of the wrong values at every place of every body and query."""
    target.lock_one()
    right = RIGHT | {"node_uuid": target.nodes[0]}
    for method, path, endpoint in ENDPOINTS:
        for verb, body in _bodies(path, endpoint, right):
            aimed = filled(path, target.idents, _aimed(verb))
            for value in lots.sample(VALUES, most):
                target.ask(method, aimed, raw=dumped(body(value)))
        aimed = filled(path, target.idents)
        for name in endpoint.query:
            for value in lots.sample(VALUES, most):
                told = value if isinstance(value, str) else json.dumps(value)[:2000]
                target.ask(method, f"{aimed}?{name}={quote(told, errors='surrogatepass')}")


Place: TypeAlias = tuple[str, Callable[[Any], Any]]  # a verb or nothing, and value -> body


def _bodies(path: str, endpoint: Endpoint, right: dict[str, Any]) -> Iterator[Place]:
    """Yield every place of a body."""
    if endpoint.named is not None:
        for verb in AIMS if path.endswith("/provision") else (right["target"],):
            aimed = right | {"target": verb}
            needed = {
                name: aimed.get(name, "x") for name, arg in endpoint.named.items() if arg.required
            }
            yield from ((verb, _put(needed, name)) for name in endpoint.named)
    elif endpoint.body is None:
        return
    elif endpoint.body.source["type"] == "array":
        yield from (("", place) for place in _patches(_fields(path)))
    else:
        needed = {name: right.get(name, "x") for name in endpoint.body.source["required"]}
        yield from (("", _put(needed, name)) for name in endpoint.body.source["properties"])


def _put(right: dict[str, Any], name: str) -> Callable[[Any], Any]:
    return lambda value: right | {name: value}


def _patches(names: list[str]) -> Iterator[Callable[[Any], Any]]:
    for name in names:
        for deeper in ("", "/x", "/0"):
            yield functools.partial(_change, "add", f"/{name}{deeper}")
        yield functools.partial(_change, "remove", f"/{name}")
    yield lambda value: [{"op": value, "path": "/extra/a", "value": 1}]
    yield lambda value: [{"op": "add", "path": value, "value": 1}]
    yield lambda value: [value]


def _change(how: str, path: str, value: Any) -> list[Any]:
    return [{"op": how, "path": path, "value": value}]


def _fields(path: str) -> list[str]:
    noun = BY_NAME.get(path.rpartition("{")[2].rstrip("}"))
    return list(noun.fields if noun else NODE_FIELDS)


def _aimed(verb: str) -> Callable[[list[str]], str]:
    """Choose the node that takes the verb."""
    number = AIMS.get(verb, 0)
    return lambda idents: idents[min(number, len(idents) - 1)]


def filled(
    path: str,
    idents: dict[str, list[str]],
    pick: Callable[[list[str]], str] = lambda known: known[0],
) -> str:
    """Return the path with idents in it."""
    return re.sub(r"{(\w+)}", lambda found: pick(idents.get(found[1]) or ["x"]), path)


def dumped(value: Any) -> bytes:
    """Return JSON in which lone surrogates are escaped, as clients in Python send it."""
    return json.dumps(value).encode()


# ---------------------------------------------------------------------- whole requests, drawn


def throw(target: fuzzing.Target, seed: int, examples: int) -> None:
    """Send so many requests, each part of which may have gone wrong, past every layer there is."""
    target.lock_one()
    target.api._app = layers.around(target.app, LAYERED, ("X-Auth-Token",))

    @hypothesis.seed(seed)
    @fuzzing.settings(examples)
    @hypothesis.given(drawn=requests())
    def look(drawn: tuple[str, str, bytes, dict[str, str]]) -> None:
        method, path, body, environ = drawn
        target.send(method, filled(path, target.idents), body, **environ)

    look()
    target.ask("GET", "/v1/nodes")


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    method, path, endpoint = draw(st.sampled_from(ENDPOINTS))
    if draw(_one_in(8)):
        method = draw(st.sampled_from(METHODS))
    if draw(_one_in(3)):
        path = draw(_paths(path))
    if draw(_one_in(3)):
        path += "?" + draw(_queries(endpoint))
    return method, path, draw(_body(path, endpoint)), draw(_headers())


def _one_in(count: int) -> st.SearchStrategy[bool]:
    return st.integers(0, count - 1).map(lambda drawn: drawn == 0)


@st.composite
def _paths(draw: st.DrawFn, path: str) -> str:
    """Return the path with segments replaced, added or cut."""
    segments = path.split("/")[1:]
    place = draw(st.integers(0, len(segments)))
    odd = draw(st.sampled_from(SEGMENTS) | st.binary(max_size=20).map(quote_from_bytes))
    keep = draw(st.sampled_from([0, 1]))
    return "/" + "/".join([*segments[:place], odd, *segments[place + keep :]])


@st.composite
def _queries(draw: st.DrawFn, endpoint: Endpoint) -> str:
    names = st.sampled_from([*endpoint.query, *(endpoint.named or {}), "limit", "fields", "x", ""])
    value = st.sampled_from(SEGMENTS) | st.binary(max_size=12).map(quote_from_bytes)
    pairs = draw(st.lists(st.tuples(names, value), max_size=4))
    joined = "&".join(f"{name}={said}" for name, said in pairs)
    return joined + draw(st.sampled_from(["", "&", "&&=", "&%", ";a=b", "&%zz=%"]))


@st.composite
def _body(draw: st.DrawFn, path: str, endpoint: Endpoint) -> bytes:
    if draw(_one_in(4)):
        return draw(st.sampled_from(RAW) | st.binary(max_size=60))
    if draw(_one_in(2)):
        return dumped(draw(JSON))
    return draw(_mutated(dumped(draw(_nearly(path, endpoint)))))


@st.composite
def _nearly(draw: st.DrawFn, path: str, endpoint: Endpoint) -> Any:
    """Return a body with the right names and any values."""
    values = st.sampled_from(VALUES)
    if endpoint.body is not None and endpoint.body.source["type"] == "array":
        names = st.sampled_from(_fields(path))
        deeper = st.sampled_from(["", "/", "/a", "/0", "/-", "/~", "/~1", "/a/b/c", "/\0", "/é"])
        change = st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "replace", "remove", "test", "move"]),
                "path": st.tuples(names, deeper).map(lambda it: f"/{it[0]}{it[1]}"),
            },
            optional={"value": values | JSON, "from": st.just("/extra")},
        )
        return draw(st.lists(change, max_size=4))
    known = endpoint.body.source["properties"] if endpoint.body else endpoint.named
    names = st.sampled_from([*(known or {}), "x"])
    return draw(st.dictionaries(names, values | JSON, max_size=5))


@st.composite
def _mutated(draw: st.DrawFn, body: bytes) -> bytes:
    """Return the body, or it cut, with bytes put in, doubled or wrapped."""
    place = draw(st.integers(0, len(body)))
    odd = draw(st.sampled_from(BITS))
    changed = body[:place] + odd + body[place:]
    return draw(st.sampled_from([body, body, body[:place], changed, body * 2, b"[" + body + b"]"]))


@st.composite
def _headers(draw: st.DrawFn) -> dict[str, str]:
    names = draw(st.lists(st.sampled_from(sorted(HEADERS)), max_size=3, unique=True))
    if draw(_one_in(2)):
        return {}
    return {name: draw(st.sampled_from(HEADERS[name])) for name in names}
