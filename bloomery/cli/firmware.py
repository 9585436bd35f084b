"""``bloomery firmware``: versions of the fleet, the catalogue, and updates, batch by batch.

A batch is ordered and watched to its end; the next one begins only within the budget of failures.
The service knows what is out of date, and builds the orders itself from the rows that ``plan``
shows.  A machine is done when its BMC shows the version of the catalogue.
"""

from __future__ import annotations

import json
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from bloomery import errors
from bloomery.cli import cloud, groups, terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.fleet import Watch, batches, roll
from bloomery.cli.node_orders import path_of

Json = dict[str, Any]
Updates = dict[str, tuple[str, str | None]]  # by component: the versions before and after

_COMPONENTS: Final = ("bios", "bmc", "nic")
_CATALOGUE: Final = "/ext/v1/firmware/catalogue"
_PROGRESS: Final = "provision_state,reservation,last_error"
_ON_THEIR_WAY: Final = (
    "cleaning", "clean wait", "clean hold", "servicing", "service wait", "service hold",
)  # fmt: skip
_POLL_S: Final = 0.5
_NAMED: Final = 3  # machines on a line of the list
_CLOUD: Final = click.option(
    "--cloud", "cloud_name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]"
)
_COMPONENT: Final = click.option(
    "--component", "components", type=click.Choice(_COMPONENTS), multiple=True,
    help="Only this one; may be repeated.",
)  # fmt: skip


class NoCatalogue(errors.Failure):
    """Nothing says which versions are wanted."""

    code = "client.no_firmware_catalogue"
    text = "the service has no catalogue of firmware: bloomery firmware catalogue set FILE"


@click.group(cls=groups.Group)
def firmware() -> None:
    """List the firmware of the fleet, and update it by a catalogue."""


# ------------------------------------------------------------------------------- the catalogue


@firmware.group(cls=groups.Group)
def catalogue() -> None:
    """Show or replace the catalogue: which version which machine is to have."""


@catalogue.command("set")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_CLOUD
def set_catalogue(file: Path, cloud_name: str | None) -> None:
    """Store the YAML file FILE as the catalogue, in the place of the former one.

    A fault of the file is refused with its line, and the former catalogue stays.
    """
    client = cloud.find(cloud_name).nodes
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise click.UsageError(f"cannot read {file}: it is no text in UTF-8") from None
    client.put(_CATALOGUE, {"catalogue": text})
    stored = client.get(_CATALOGUE)
    terminal.echo(f"stored: {stored['entries']} entries, digest {stored['digest']}")


@catalogue.command()
@click.option("--digest", is_flag=True, help="Print the digest alone, for templates of stacks.")
@_CLOUD
def show(digest: bool, cloud_name: str | None) -> None:
    """Print the catalogue as it was written."""
    document = cloud.find(cloud_name).nodes.get(_CATALOGUE)
    if document["catalogue"] is None:
        raise NoCatalogue
    for line in [document["digest"]] if digest else document["catalogue"].splitlines():
        click.echo(terminal.visible(line))


@catalogue.command()
@groups.YES
@_CLOUD
def remove(yes: bool, cloud_name: str | None) -> None:
    """Remove the catalogue: nothing is out of date any more."""
    groups.confirm("Remove the catalogue of firmware?", yes=yes)
    cloud.find(cloud_name).nodes.delete(_CATALOGUE)


# ------------------------------------------------------------------------------------ the list


@firmware.command("list")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@groups.filtered
@_COMPONENT
@click.option("--names", is_flag=True, help="Name all machines of a line.")
@groups.AS_JSON
@_CLOUD
def list_versions(
    nodes: tuple[str, ...],
    takes_all: bool,  # the default
    components: tuple[str, ...],
    names: bool,
    as_json: bool,
    cloud_name: str | None,
    **filters: str | None,
) -> None:
    """List models, components and versions: how many machines have them, and which.

    No BMC is asked: the versions are those that it showed last.
    """
    machines = list(_machines(cloud.find(cloud_name).nodes, nodes, filters))
    by_version: dict[tuple[str, ...], list[str]] = {}
    for machine in machines:
        for each in _components(machine, components):
            kind = each["component"].partition(":")[0]
            model = each["model"] if kind == "nic" else machine["model"] or each["model"]
            line = (model, kind, each["current_version"], each["catalogue_version"])
            names_of = by_version.setdefault(tuple(text or "" for text in line), [])
            if _name(machine) not in names_of[-1:]:  # two adapters of one machine
                names_of.append(_name(machine))
    keys = ("model", "component", "version", "catalogue_version")
    lines = sorted(by_version.items())
    if as_json:
        documents = [
            dict(zip(keys, (text or None for text in line), strict=True)) | {"machines": names_of}
            for line, names_of in lines
        ]
        click.echo(json.dumps(documents, indent=2))
        return
    if lines:
        rows = [("MODEL", "COMPONENT", "VERSION", "CATALOGUE", "MACHINES", "")]
        for (model, kind, version, listed), names_of in lines:
            shown = names_of if names else names_of[:_NAMED]
            more = len(names_of) - len(shown)
            which = ", ".join(shown) + (f" and {more} more" if more else "")
            wanted = "the same" if listed and listed == version else listed or "-"
            cells = (model or "unknown", kind, version or "unknown", wanted, str(len(names_of)))
            rows.append((*cells, which))
        for text in terminal.columns(rows):
            click.echo(text)
    unread = sum(not machine["components"] for machine in machines)
    if unread or not machines:
        click.echo(f"{terminal.amount(unread, 'machine')} with unknown firmware", err=True)


def _machines(client: Client, nodes: Sequence[str], filters: Json) -> Iterator[Json]:
    """Yield the machines of these names, or all that the filters leave."""
    if nodes:
        for node in dict.fromkeys(nodes):
            path = f"/ext/v1/nodes/{urllib.parse.quote(node, safe='')}/firmware"
            yield client.get(path)["machine"]
        return
    wanted = {name: value for name in groups.FILTERS if (value := filters[name]) is not None}
    for machine in client.pages("/ext/v1/firmware?limit=1000", "machines"):
        if all(machine[name] == value for name, value in wanted.items()):
            yield machine


def _components(machine: Json, kinds: Sequence[str]) -> list[Json]:
    return [
        each
        for each in machine["components"]
        if not kinds or each["component"].partition(":")[0] in kinds
    ]


def _updates(machine: Json, kinds: Sequence[str]) -> Updates:
    """Return the version and that of the catalogue, by component that differs."""
    return {
        each["component"]: (each["current_version"] or "unknown", each["catalogue_version"])
        for each in _components(machine, kinds)
        if each["catalogue_version"] not in (None, each["current_version"])
    }


def _name(machine: Json) -> str:
    return str(machine["name"] or machine["uuid"])


# -------------------------------------------------------------------------------- plan and apply


@firmware.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@groups.filtered
@_COMPONENT
@groups.AS_JSON
@_CLOUD
def plan(
    nodes: tuple[str, ...],
    takes_all: bool,  # the default
    components: tuple[str, ...],
    as_json: bool,
    cloud_name: str | None,
    **filters: str | None,
) -> None:
    """Show what is out of date by the catalogue, and by which verbs apply would update it.

    All nodes are planned, unless some are named or chosen.
    """
    client = cloud.find(cloud_name).nodes
    _digest(client)
    machines = list(_machines(client, nodes, filters))
    outdated = [each for each in machines if _updates(each, components)]
    if as_json:
        keys = ("uuid", "name", "provision_state", "verbs", "refusal")
        documents = [
            {key: each[key] for key in keys}
            | {
                "updates": [
                    {"component": name, "current_version": now, "catalogue_version": then}
                    for name, (now, then) in _updates(each, components).items()
                ]
            }
            for each in outdated
        ]
        click.echo(json.dumps(documents, indent=2))
        return
    rows = [
        (
            _name(each),
            each["provision_state"],
            ", ".join(each["verbs"]) or "not now",
            _sentence(_updates(each, components))
            + (f"; {each['refusal']}" if each["refusal"] else ""),
        )
        for each in outdated
    ]
    for text in terminal.columns(rows) if rows else ():
        click.echo(text)
    counts = Counter(_kind_of(each, components) for each in machines)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS if counts[kind])
    click.echo(f"{terminal.amount(len(machines), 'machine')}: {summary or '-'}")


_KINDS: Final = (
    "to update", "not now", "as the catalogue says", "not in the catalogue",
    "with unknown firmware",
)  # fmt: skip


def _kind_of(machine: Json, kinds: Sequence[str]) -> str:
    if _updates(machine, kinds):
        return _KINDS[0] if machine["verbs"] else _KINDS[1]
    if not machine["components"]:
        return _KINDS[4]
    parts = _components(machine, kinds)
    return _KINDS[2] if any(each["catalogue_version"] for each in parts) else _KINDS[3]


def _sentence(updates: Updates) -> str:
    return ", ".join(
        f"{name} {now} -> {then or 'the kept image'}" for name, (now, then) in updates.items()
    )


def _digest(client: Client) -> str:
    """Return the digest of the catalogue.  Raises NoCatalogue."""
    digest = client.get("/ext/v1/firmware?limit=1")["catalogue"]
    if digest is None:
        raise NoCatalogue
    return str(digest)


@firmware.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@groups.filtered
@_COMPONENT
@groups.batched(20)
@_CLOUD
def apply(
    nodes: tuple[str, ...],
    takes_all: bool,
    components: tuple[str, ...],
    cloud_name: str | None,
    yes: bool,
    **more: Any,
) -> None:
    """Update what is out of date by the catalogue, batch by batch.

    Manageable nodes are cleaned with the step firmware.update, and active ones are serviced.
    Available ones are managed, cleaned, and provided again.  Versions are read back from the BMC.
    The exit code is 1 where a machine that is out of date was not updated.
    """
    groups.chosen_filters(nodes, takes_all, more)
    client = cloud.find(cloud_name).nodes
    order: Json = {"catalogue": _digest(client), "components": list(components or _COMPONENTS)}
    machines = [each for each in _machines(client, nodes, more) if _updates(each, components)]
    expected = {each["uuid"]: _updates(each, components) for each in machines}
    _confirm("Update", machines, yes=yes)
    _carry_out(client, machines, order, expected, **_limits(more))


@firmware.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@groups.filtered
@click.option("--component", type=click.Choice(_COMPONENTS[:2]), required=True, help="This one.")
@click.option("--version", help="Of the image, where a BMC keeps several.")
@groups.batched(20)
@_CLOUD
def rollback(
    nodes: tuple[str, ...],
    takes_all: bool,
    component: str,
    version: str | None,
    cloud_name: str | None,
    yes: bool,
    **more: Any,
) -> None:
    """Return to the image of a component that the BMC keeps, batch by batch.

    It runs by the same verbs as apply.  A BMC that keeps no other image is named, and left as it
    is.  To repeat it returns to the newer image again.
    """
    groups.chosen_filters(nodes, takes_all, more)
    client = cloud.find(cloud_name).nodes
    image = {"component": component} | ({"version": version} if version else {})
    order: Json = {"rollback": image}
    machines = [each for each in _machines(client, nodes, more) if each["components"]]
    versions = {
        each["uuid"]: next(
            (part["current_version"] for part in _components(each, [component])), None
        )
        for each in machines
    }
    expected = {
        uuid: {component: (before or "unknown", version)} for uuid, before in versions.items()
    }
    _confirm(f"Return to the other image of {component} of", machines, yes=yes)
    _carry_out(client, machines, order, expected, **_limits(more))


def _limits(more: Json) -> Json:
    return {name: more[name] for name in ("size", "budget", "limit_s", "as_json")}


def _confirm(verb: str, machines: Sequence[Json], *, yes: bool) -> None:
    able = [each for each in machines if each["verbs"]]
    if able:
        active = sum(each["provision_state"] == "active" for each in able)
        running = f", {active} of them active" if active else ""
        question = f"{verb} {terminal.amount(len(able), 'machine')}{running}? They may restart."
        groups.confirm(question, yes=yes)


def _carry_out(
    client: Client,
    machines: Sequence[Json],
    order: Json,
    expected: Mapping[str, Updates],
    *,
    size: int,
    budget: int,
    limit_s: float,
    as_json: bool,
) -> None:
    """Carry an order out in batches; exit with 1 where it failed, or was not possible.

    ``expected``: the changes by UUID; a version None: any other one.
    """
    results: list[Json] = []

    def note(machine: Json, updates: str, error: str | None) -> None:
        results.append({"node": _name(machine), "updates": updates, "error": error})
        if not as_json:
            terminal.echo(f"{_name(machine)}: {error or updates}", err=error is not None)

    for machine in machines:
        if not machine["verbs"]:
            note(machine, _sentence(expected[machine["uuid"]]), machine["refusal"])
    changes = dict(expected)

    def run(batch: Sequence[Json]) -> list[str | None]:
        parts = {each["uuid"]: expected[each["uuid"]] for each in batch}
        ended, shown = _Batch(client, batch, limit_s).run(order, parts)
        changes.update(shown)
        return [ended[each["uuid"]] for each in batch]

    for each, error in roll([each for each in machines if each["verbs"]], size, budget, run):
        note(each, _sentence(changes[each["uuid"]]), error)
    if as_json:
        click.echo(json.dumps(results, indent=2))
    elif not machines:
        click.echo("nothing is out of date" if "catalogue" in order else "no machine to change")
    if any(result["error"] for result in results):
        raise SystemExit(1)


class _Batch:
    """Machines that are updated together; ``errors`` holds those that have failed, by UUID."""

    def __init__(self, client: Client, machines: Sequence[Json], limit_s: float) -> None:
        self._client = client
        self._machines = {each["uuid"]: each for each in machines}
        self._watch = Watch(client, limit_s)
        self.errors: dict[str, str] = {}

    def run(
        self, order: Json, expected: Mapping[str, Updates]
    ) -> tuple[dict[str, str | None], dict[str, Updates]]:
        """Return by UUID why a machine was not updated, or None; and the changes as BMCs show."""
        lent = [uuid for uuid, each in self._machines.items() if each["verbs"][0] == "manage"]
        self._act(lent, {"provision": {"target": "manage"}})
        self._settle(lent, lambda _uuid: "manageable")
        lent = self._left(lent)
        self._act(self._left(self._machines), {"firmware": order})
        at_rest = self._left(self._machines)
        states = {uuid: self._machines[uuid]["provision_state"] for uuid in at_rest}
        states |= dict.fromkeys(lent, "manageable")
        self._settle(at_rest, states.__getitem__)
        shown = dict(expected)
        for uuid in self._left(at_rest):
            shown[uuid] = self._check(uuid, expected[uuid])
        self._provide(lent)
        return {uuid: self.errors.get(uuid) for uuid in self._machines}, shown

    def _provide(self, uuids: Sequence[str]) -> None:
        """Order that machines become available again, unless their cleaning has failed."""
        failed = dict(self.errors)
        for uuid in uuids:
            try:
                state = self._read(uuid)["provision_state"]
            except ApiError as exc:
                self.errors.setdefault(uuid, f"cannot tell whether it is available again: {exc}")
                continue
            if state == "manageable":
                self._act([uuid], {"provision": {"target": "provide"}})
            if uuid in self.errors and uuid not in failed:
                self.errors[uuid] = f"it is updated, and stays manageable: {self.errors[uuid]}"

    def _left(self, uuids: Any) -> list[str]:
        return [uuid for uuid in uuids if uuid not in self.errors]

    def _act(self, uuids: Sequence[str], action: Json) -> None:
        """Order an action of the machines, and note who is refused."""
        for part in batches(uuids):
            try:
                answer = self._client.post("/ext/v1/nodes:act", {"nodes": list(part), **action})
            except ApiError as exc:
                self.errors |= {uuid: str(exc) for uuid in part if uuid not in self.errors}
                continue
            for result in answer["results"]:
                if result["error"]:
                    self.errors.setdefault(result["node"], result["error"]["message"])

    def _settle(self, uuids: Sequence[str], expected: Callable[[str], str]) -> None:
        """Wait until the machines rest, and note those that are not in the expected state."""
        pending = self._left(uuids)
        while pending:
            for uuid in list(pending):
                try:
                    node = self._read(uuid)
                except ApiError as exc:
                    self.errors[uuid] = f"cannot tell whether it was updated: {exc}"
                    pending.remove(uuid)
                    continue
                state = node["provision_state"]
                if node["reservation"] is None and state not in _ON_THEIR_WAY:
                    pending.remove(uuid)
                    if state != expected(uuid):
                        self.errors[uuid] = node["last_error"] or f"it is in {state}"
                elif self._watch.is_over:
                    pending.remove(uuid)
                    self.errors[uuid] = f"it is in {state} at the end of the batch's time"
            if pending:
                time.sleep(_POLL_S)

    def _check(self, uuid: str, updates: Updates) -> Updates:
        """Return what the BMC shows now; note a machine with another version than expected."""
        try:
            machine = self._watch.read(f"/ext/v1/nodes/{uuid}/firmware")["machine"]
        except ApiError as exc:
            self.errors[uuid] = f"cannot tell whether it was updated: {exc}"
            return updates
        versions = {each["component"]: each["current_version"] for each in machine["components"]}
        for name, (before, then) in updates.items():
            version = versions.get(name)
            if version in (None, before) if then is None else version != then:
                self.errors[uuid] = f"its BMC shows {name} {version}, not {then or 'another one'}"
        return {name: (before, versions.get(name)) for name, (before, _) in updates.items()}

    def _read(self, uuid: str) -> Json:
        return self._watch.read(f"{path_of(uuid)}?fields={_PROGRESS}")
