"""The catalogue of firmware: which version a component of which machine is to have.

A catalogue is a YAML list of the operator:

    - {model: R650, component: bios, version: "1.13.2", url: "http://files.test/r650-1.13.2"}

    catalogue = firmware.parse(text)
    firmware.pending(catalogue, rows_of_one_machine)[0].entry.version     # "1.13.2"

``bios`` and ``bmc`` belong to the machine's model, which its row of ``bios`` has, ``bmc`` also to
the model of the BMC, and ``nic`` to each network adapter's.
"""

from __future__ import annotations

import hashlib
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bloomery import errors, parsing
from bloomery.conductor.states import State

if TYPE_CHECKING:
    import yaml

Json = dict[str, Any]

CHECKSUMS: Final = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
NIC: Final = "nic:"  # before the serial number or Id of a network adapter, in rows
COMPONENTS: Final = ("bios", "bmc", "nic")
LONGEST_WAIT_S: Final = 24 * 3600
MOST_BYTES: Final = 60_000  # of a catalogue: the smallest text column of a server has 65,535
_TEXTS: Final = ("model", "component", "version", "url")  # needed
_KEYS: Final = (*_TEXTS, "vendor", "checksum", "wait", "or_newer")
_LONGEST, _LONGEST_URL = 255, 2048
_PARTS: Final = re.compile(r"[0-9]+|[a-z]+")  # of a version
_WAYS: Final[Mapping[str, tuple[str, ...]]] = {  # the verbs that update a machine in its state
    State.MANAGEABLE: ("clean",),
    State.AVAILABLE: ("manage", "clean", "provide"),
    State.ACTIVE: ("service",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the catalogue; ``vendor`` None: of any; ``wait``: seconds of rest afterwards.

    ``or_newer``: a component with a newer version stays as it is.
    """

    model: str
    component: str
    version: str
    url: str
    vendor: str | None = None
    checksum: str | None = None
    wait: float | None = None
    or_newer: bool = False

    def wanted_of(self, current: str | None) -> str:
        """Return the version that a component with this one is to have: its own, if it may stay."""
        if self.or_newer and current is not None and is_newer(current, self.version):
            return current
        return self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """``digest`` names its content; entries stand in the order in which they are applied."""

    digest: str
    entries: tuple[Entry, ...]
    by_model: Mapping[tuple[str, str], Sequence[int]]  # places of entries by component, model

    def find(self, component: str, vendor: str | None, model: str | None) -> int | None:
        """Return the place of the entry for a component; letters of any case are the same."""
        for place in self.by_model.get((component, (model or "").casefold()), ()):
            theirs = self.entries[place].vendor
            if theirs is None or theirs.casefold() == (vendor or "").casefold():
                return place
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A component of a machine that has another version than the catalogue."""

    component: str
    current_version: str | None
    entry: Entry

    @property
    def document(self) -> Json:
        return {
            "component": self.component, "current_version": self.current_version,
            "catalogue_version": self.entry.version,
        }  # fmt: skip

    @property
    def setting(self) -> Json:
        """Return the entry of the step firmware.update."""
        entry = self.entry
        more = {"checksum": entry.checksum, "wait": entry.wait}
        return {
            "component": self.component, "url": entry.url, "version": entry.version,
            **{name: value for name, value in more.items() if value is not None},
        }  # fmt: skip


def machine_of(rows: Iterable[Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """Return vendor and model of the machine with these rows of firmware."""
    bios = next((row for row in rows if row["component"] == "bios"), {})
    return bios.get("vendor"), bios.get("model")


def match(catalogue: Catalogue, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the place of the catalogue's entry by component, for the rows of one machine."""
    vendor, model = machine_of(rows)
    places = {}
    for row in rows:
        name = row["component"]
        if name.startswith(NIC):
            place = catalogue.find("nic", row["vendor"], row["model"])
        else:
            place = catalogue.find(name, vendor, model)
            if place is None and name == "bmc":
                place = catalogue.find(name, vendor, row["model"])
        if place is not None:
            places[name] = place
    return places


def versions_of(catalogue: Catalogue, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the version that each component is to have, for the rows of one machine."""
    current = {row["component"]: row["current_version"] for row in rows}
    places = match(catalogue, rows)
    return {
        name: catalogue.entries[place].wanted_of(current[name]) for name, place in places.items()
    }


def pending(catalogue: Catalogue, rows: Sequence[Mapping[str, Any]]) -> list[Update]:
    """Return the updates that one machine needs, in the order of the catalogue."""
    versions = {row["component"]: row["current_version"] for row in rows}
    ordered = sorted(match(catalogue, rows).items(), key=lambda item: (item[1], item[0]))
    return [
        Update(component=name, current_version=versions[name], entry=catalogue.entries[place])
        for name, place in ordered
        if versions[name] != catalogue.entries[place].wanted_of(versions[name])
    ]


def is_newer(version: str, than: str) -> bool:
    """Return whether a version is newer, by the first part that differs; no if it is no number.

    Parts are numbers and words: 2.10 is newer than 2.9, and 2.1.1 than 2.1.
    """
    ours, theirs = (_PARTS.findall(text.lower()) for text in (version, than))
    for own, other in zip(ours, theirs, strict=False):
        if own.isdigit() and other.isdigit():
            if int(own) != int(other):
                return int(own) > int(other)
        elif own != other:
            return False
    return len(ours) > len(theirs) and ours[len(theirs)].isdigit()


def find_way(node: Any) -> tuple[Sequence[str], str | None]:
    """Return the verbs that update a machine, of its row of nodes, or none and why not."""
    state = node.provision_state
    verbs = _WAYS.get(state, ())
    if not verbs:
        return (), (
            f"it is in {state}: firmware is updated in {', '.join(_WAYS)}; see bloomery node why"
        )
    if node.maintenance:
        return (), "it is in maintenance: end that first"
    if state == State.AVAILABLE and node.instance_uuid:
        return (), f"it is reserved for instance {node.instance_uuid}"
    if state == State.AVAILABLE and node.retired:
        return (), "it is retired: ask for manage first (bloomery node manage)"
    return verbs, None


# ------------------------------------------------------------------------------------- reading


def parse(text: str) -> Catalogue:
    """Return the catalogue of a YAML text.  Raises Invalid, which names the line."""
    import yaml  # slow to import, and rarely needed

    if len(raw := text.encode()) > MOST_BYTES:
        raise errors.Invalid(
            reason=f"cannot take a catalogue of {len(raw):,} bytes: {MOST_BYTES:,} are allowed"
        )
    try:
        root = parsing.compose_yaml(raw)
        documents = parsing.load_yaml(raw)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        why = getattr(exc, "problem", None) or "it is no YAML"
        raise _unfit(None if mark is None else mark.line, str(why)) from None
    except ValueError as exc:
        raise _unfit(None, str(exc)) from None
    if not isinstance(documents, list) or root is None or not documents:
        raise _unfit(None, "a list of entries is needed, each with " + ", ".join(_TEXTS))
    entries: list[Entry] = []
    lines: list[int] = []
    by_model: dict[tuple[str, str], list[int]] = {}
    for node, document in zip(root.value, documents, strict=True):
        line = node.start_mark.line
        entry = _entry(node, document, line)
        others = by_model.setdefault((entry.component, entry.model.casefold()), [])
        for place in others:
            vendors = {each.vendor and each.vendor.casefold() for each in (entries[place], entry)}
            if None in vendors or len(vendors) == 1:
                raise _unfit(line, f"line {lines[place] + 1} has {entry.component} of "
                             f"{entry.model} already")  # fmt: skip
        others.append(len(entries))
        entries.append(entry)
        lines.append(line)
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return Catalogue(digest=digest, entries=tuple(entries), by_model=by_model)


def _entry(node: yaml.Node, document: Any, line: int) -> Entry:
    if not isinstance(document, dict):
        raise _unfit(line, f"an entry is a map of {', '.join(_KEYS)}")
    lines = {str(key.value): key.start_mark.line for key, _ in node.value}
    names = [str(key.value) for key, _ in node.value]
    for name in names:
        if name not in _KEYS:
            raise _unfit(lines[name], f"{name} is unknown; the keys are {', '.join(_KEYS)}")
        if names.count(name) > 1:
            raise _unfit(lines[name], f"{name} stands there twice")
    for name in (*_TEXTS, "vendor", "checksum"):
        value = document.get(name)
        if value is None and name in _TEXTS:
            raise _unfit(lines.get(name, line), f"{name} is missing")
        if value is not None and not isinstance(value, str | list | dict):  # 1.10 is 1.1 in YAML
            raise _unfit(lines[name], f"{name} is no text for YAML: write it in quotes")
        longest = _LONGEST_URL if name == "url" else _LONGEST
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= longest):
            raise _unfit(lines[name], f"{name} takes a text of 1 to {longest} characters")
    if document["component"] not in COMPONENTS:
        raise _unfit(lines["component"], f"component is {errors.shortened(document['component'])}, "
                     f"and takes {', '.join(COMPONENTS)}")  # fmt: skip
    if (fault := _fault_of_url(document["url"])) is not None:
        raise _unfit(lines["url"], fault)
    checksum, wait = document.get("checksum"), document.get("wait", 0)
    is_wait = type(wait) in (int, float) and 0 <= wait <= LONGEST_WAIT_S
    for name, is_right, takes in (
        (
            "checksum",
            checksum is None or is_checksum(checksum),
            f"the hexadecimal digits of {', '.join(CHECKSUMS.values())}",
        ),
        ("wait", is_wait, f"seconds, from 0 to {LONGEST_WAIT_S}"),
        ("or_newer", isinstance(document.get("or_newer", False), bool), "true or false"),
    ):
        if not is_right:
            raise _unfit(lines[name], f"{name} takes {takes}")
    return Entry(**document)


def is_checksum(value: object) -> bool:
    is_hex = isinstance(value, str) and not set(value.lower()) - set("0123456789abcdef")
    return is_hex and len(str(value)) in CHECKSUMS


def _fault_of_url(url: str) -> str | None:
    """Return why no BMC fetches a file from there, or why it may not stand in a catalogue."""
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            return "url takes an address of http or https"
    except ValueError:
        return "url takes an address of http or https"
    if parts.username is not None or parts.password is not None:
        return "url has a login, which all readers of the catalogue would see: serve it without"
    return None


def _unfit(line: int | None, why: str) -> errors.Invalid:
    """Return the refusal of a catalogue; ``line`` counts from 0."""
    place = "" if line is None else f"line {line + 1}: "
    return errors.Invalid(reason=f"cannot take the catalogue: {place}{why}")
