"""Why an answer may differ from Ironic's: a name, a reason, how many places, and which.

A reason names a decision of ours or an accident of Ironic that clients cannot rely on.  One more
has to hurt no client, and stands in doc/reference/differences.md first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tests.conformance.ironic.compare import Comparison


class Allowance(NamedTuple):
    why: str
    most: int  # places of the seed that is recorded; other seeds have other numbers
    applies: Callable[[Comparison], bool]


MOST_REASONS: Final = 39
REFUSALS: Final = frozenset({400, 403, 404, 405, 406, 409})
ODD_PATHS: Final = re.compile(
    r"/nodes/(?:states|management|maintenance)$|/x$|/b$|/traits$|/portgroups$|/detail$|/vmedia/"
    r"|/traits/|/vendor_passthru|/indicators"
)
TOLERATED: Final = re.compile(  # what Ironic takes, and is no use
    r'"uuid": null|"local_gb": (?:1\.5|true)|x{255}|"parent_node": ""'
    r'|"(?:retired|disable_power_off|mode|enabled)": null|"timeout": 1.5|"value": null'
    r'|"path": "/name"|"value": (?:1.5|true)|/(?:ports|portgroups|connectors|targets)\?node='
    r'|"order": 1, "priority": 1|\?sort_key=chassis_id|/(?:ports|portgroups)(?:/detail)?\?'
    r'|"path": "/parent_node", "value": "kid"'  # a child of the node itself
    r'|"path": "/properties"|vtep|/indicators\?|[?&](?:parent_node|include_children)='
    r'|/chassis/[^/]+/nodes\?|/nobody/volume|"port_uuid": "x"|"path": "/portgroup_uuid"'
    r"|/nodes\?marker="
)
STRICTER: Final = re.compile(  # what Ironic refuses for no reason that helps anybody
    r'"available_for_dynamic_portgroup"|"/node_ident"|\?sort_key=node_uuid|"/steps/0"|"/local_link_connection"'
    r"|/extra/(?:a~1b|~0)"
)
ID: Final = re.compile(r"<id \d+>")


def _asked(row: Comparison) -> str:
    return f"{row.call.method} {row.call.path} {json.dumps(row.call.body, default=str)}"


def _status(row: Comparison) -> bool:
    return row.place == "status" and isinstance(row.theirs, int)


def _crash(row: Comparison) -> bool:
    return _status(row) and row.theirs == 500 and row.ours < 500


def _tolerated(row: Comparison) -> bool:
    refused = _status(row) and row.theirs < 300 and row.ours in REFUSALS
    return refused and bool(TOLERATED.search(_asked(row)))


def _stricter(row: Comparison) -> bool:
    accepted = _status(row) and row.theirs in REFUSALS and row.ours < 300
    return accepted and bool(STRICTER.search(_asked(row)))


def _escaped_key(row: Comparison) -> bool:
    kept = row.place in {"body.extra.a/b", "body.extra.~"} and row.theirs == "<absent>"
    return row.story.startswith("patches") and kept


def _order(row: Comparison) -> bool:
    return _status(row) and {row.theirs, row.ours} <= REFUSALS


def _own_lock(row: Comparison) -> bool:
    return row.place == "body.reservation" and row.call.method == "PATCH" and row.ours is None


def _internal(row: Comparison) -> bool:
    return bool(re.match(r"body\.(?:nodes\.\d+\.)?driver_internal_info", row.place))


def _empty_filter(row: Comparison) -> bool:
    asked = re.search(r"[?&](?:conductor|shard|conductor_groups)=(?:&|$)", row.call.path)
    return asked is not None and row.ours == []


def _touched(row: Comparison) -> bool:
    return row.place.endswith("updated_at")


def _documentation(row: Comparison) -> bool:
    return row.place == "body.links.1.href" and "docs.openstack.org" in str(row.theirs)


def _history(row: Comparison) -> bool:
    return "/history" in row.call.path and row.place.startswith("body")


def _allow(row: Comparison) -> bool:
    return row.place == "headers.allow"


def _form(row: Comparison) -> bool:
    return row.place == "error.form" and {row.theirs, row.ours} == {"first", "second"}


def _page(row: Comparison) -> bool:
    return row.place == "error.form" and row.theirs == "page"


def _odd_path(row: Comparison) -> bool:
    refused = _status(row) and {row.theirs, row.ours} <= REFUSALS
    return refused and bool(ODD_PATHS.search(row.call.path))


def _no_text(row: Comparison) -> bool:
    return row.call.raw == b"\xff"


def _other_type(row: Comparison) -> bool:
    """The node that Ironic makes of text/plain also takes an id from all that come after it."""
    if row.call.headers.get("Content-Type") == "text/plain":
        return row.ours == 415
    theirs, ours = (ID.sub("", str(answer)) for answer in (row.theirs, row.ours))
    return row.story == "bodies" and theirs == ours


def _words(row: Comparison) -> bool:
    return row.place == "error.words"


def _root_methods(row: Comparison) -> bool:
    return row.call.method not in {"GET", "HEAD"} and row.call.path == "/"


def _boot(row: Comparison) -> bool:
    return row.story == "boot" and row.place in {
        "body.boot_mode", "body.secure_boot", "body.last_error",
    }  # fmt: skip


def _null_boolean(row: Comparison) -> bool:
    return row.theirs is None and row.ours is False


def _rescue_password(row: Comparison) -> bool:
    return row.place.endswith("rescue_password")


def _media(row: Comparison) -> bool:
    return "vmedia" in row.call.path and (row.theirs, row.ours) == (400, 200)


def _parent(row: Comparison) -> bool:
    return row.call.path.endswith("parent_node=parent") and row.place.startswith("body.nodes")


def _new_boot_mode(row: Comparison) -> bool:
    return row.call.method == "POST" and row.place in {"body.boot_mode", "body.secure_boot"}


def _null_marker(row: Comparison) -> bool:
    return "marker=" in row.call.path and "sort_key=name" in row.call.path


def _steps(row: Comparison) -> bool:
    return ".steps" in row.place and row.call.path.startswith(("/v1/deploy_templates", "/v1/runb"))


def _last_error(row: Comparison) -> bool:
    return row.place.endswith("last_error") and row.ours is None


def _filters(row: Comparison) -> bool:
    return row.call.path.startswith("/v1/inspection_rules") and row.place in {
        "body.next", "body.inspection_rules",
    }  # fmt: skip


def _reserved(row: Comparison) -> bool:
    return row.story == "holding"


def _inventory(row: Comparison) -> bool:
    return row.place == "body.fake_inventory" and row.call.path.endswith("/properties")


def _both_filters(row: Comparison) -> bool:
    return row.call.path.startswith("/v1/ports?address=") and row.place == "body.ports"


def _member(row: Comparison) -> bool:
    return row.story == "changes of groups" and row.place == "body.pxe_enabled"


def _other_methods(row: Comparison) -> bool:
    return row.call.path.endswith("/vendor_passthru/methods") and row.ours == "<absent>"


def _unknown_step(row: Comparison) -> bool:
    """A template or a request names raid.nope: there the node is deployed, here it is not."""
    named = row.story in {"arguments while available", "template verbs"}
    return named and (row.theirs, row.ours) in {(202, 400), ("active", "available")}


def _retired(row: Comparison) -> bool:
    taken = row.place in {"body.state", "body.node_uuid"} and row.theirs != row.ours
    return row.story == "retired nodes" and row.call.path.startswith("/v1/allocations") and taken


def _no_number(row: Comparison) -> bool:
    return b"Infinity" in (row.call.raw or b"") and (row.theirs, row.ours) == (200, 400)


def _slash(row: Comparison) -> bool:
    return row.call.path.endswith("/detail/") and (row.theirs, row.ours) == (404, 200)


def _step_that_ended(row: Comparison) -> bool:
    return row.place.startswith("body.service_step") and row.ours == "<absent>"


ALLOWED: Final[Mapping[str, Allowance]] = {
    "a crash of Ironic": Allowance(
        "Ironic answers 500 where a request is odd; here it is refused, or does what it says",
        278,
        _crash,
    ),
    "what is no use": Allowance(
        "Ironic takes values that it cannot mean: null ids, texts longer than columns, fractions",
        63,
        _tolerated,
    ),
    "refused for no reason": Allowance(
        "Ironic refuses what it could do, such as keys with a slash; here it is done",
        22,
        _stricter,
    ),
    "keys with a slash or a tilde": Allowance(
        "a key that Ironic has refused is there in the answers after it", 72, _escaped_key
    ),
    "lock of the change": Allowance(
        "the answer to a PATCH shows the lock that the PATCH itself held; here it is gone",
        441,
        _own_lock,
    ),
    "internal info": Allowance("progress is in rows, not in driver_internal_info", 458, _internal),
    "updated_at": Allowance("changes with what is stored, and only then", 27, _touched),
    "boot mode of fake hardware": Allowance("fake-hardware can set it", 26, _boot),
    "booleans that are null": Allowance("a boolean without a value is false", 95, _null_boolean),
    "rescue password": Allowance("is forgotten after its use", 9, _rescue_password),
    "step that has ended": Allowance("is not shown any more", 38, _step_that_ended),
    "virtual media of fake hardware": Allowance("can be tried with it", 5, _media),
    "parent by name": Allowance("a filter takes what other arguments take", 1, _parent),
    "boot mode of a new node": Allowance("is asked of the machine, not told", 5, _new_boot_mode),
    "empty filter": Allowance("an empty word is a value, which nothing has", 2, _empty_filter),
    "marker without a name": Allowance(
        "Ironic ends a list behind a marker that has no value in the column of the order",
        2,
        _null_marker,
    ),
    "deploy step that nothing offers": Allowance(
        "Ironic leaves it out until an agent has told what it offers; none does so here",
        7,
        _unknown_step,
    ),
    "order of steps": Allowance("steps of a template come as they were sent", 39, _steps),
    "last_error": Allowance("tells of what has failed; this has not", 6, _last_error),
    "filters of rules": Allowance("the filter for the phase works, and next is clean", 3, _filters),
    "reserved steps": Allowance(
        "hold and its like work in every list of steps; Ironic drops them", 67, _reserved
    ),
    "inventory of fake hardware": Allowance(
        "driver_info/fake_inventory is what an inspection brings", 11, _inventory
    ),
    "address and node": Allowance("filters of ports are applied together", 1, _both_filters),
    "member that boots": Allowance(
        "a group without standalone ports has none that boot, on any network", 2, _member
    ),
    "methods of another interface": Allowance(
        "Ironic lists the methods of the driver's first node for all its nodes", 4, _other_methods
    ),
    "retired nodes": Allowance("are given to no allocation", 4, _retired),
    "NaN and Infinity": Allowance("are no numbers of JSON", 1, _no_number),
    "a slash at the end": Allowance("is as good as none after detail, too", 4, _slash),
    "another page": Allowance("/v1 links to our own documentation", 28, _documentation),
    "history of moves": Allowance("history tells every move of a node", 22, _history),
    "Allow": Allowance("405 says what the path itself allows, whatever the version", 66, _allow),
    "bytes that are no text": Allowance(
        "a body that is no UTF-8 is refused as one that is no JSON is", 4, _no_text
    ),
    "body of another type": Allowance(
        "a page in a browser may send text/plain anywhere, so that bodies are read as JSON only",
        14,
        _other_type,
    ),
    "404 of a path that leads nowhere": Allowance(
        "whether routing or a handler says so depends on how Ironic's controllers are cut",
        32,
        _form,
    ),
    "error page": Allowance("404 is JSON also for whoever prefers another type", 5, _page),
    "refusal of an odd path": Allowance(
        "what a path with too many segments is refused with depends on Ironic's framework",
        71,
        _odd_path,
    ),
    "order of checks": Allowance(
        "of two faults either is named, and a path without the method is 405 before all else",
        113,
        _order,
    ),
    "words of a refusal": Allowance("names what is missing, or is called otherwise", 90, _words),
    "other methods of /": Allowance("are answered as those of every other path", 10, _root_methods),
}


def reason(row: Comparison) -> str | None:
    """Return the name of the first reason that covers a difference."""
    for name, allowance in ALLOWED.items():
        if allowance.applies(row):
            return name
    return None
