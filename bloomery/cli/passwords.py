"""``bloomery bmc password rotate``: new passwords for the BMCs of many nodes, batch by batch.

A batch is ordered and watched to its end; the next one begins only if no node of it has failed.  So
a mistake, such as a policy that no password meets, costs one batch.
"""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from bloomery.cli import cloud, groups, terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.fleet import Watch, batches
from bloomery.cli.node_orders import path_of

Json = dict[str, Any]

_FIELDS: Final = (
    "uuid,name,provision_state,maintenance,management_interface,driver_info,driver_internal_info"
)
_PROGRESS: Final = "provision_state,reservation,last_error,driver_internal_info"
_VERBS: Final = {"manageable": "clean", "active": "service"}  # by the state that runs the step
_OTHER_LOGIN: Final = "bmc_other_login"  # of driver_internal_info: differs after each change
_PORTS: Final = {"http": 80, "https": 443}
_POLL_S: Final = 0.5


@dataclass(slots=True, kw_only=True)
class Rotation:
    """The change of one BMC's password.

    ``node``: it runs the step; ``others``: nodes that share the login.
    """

    node: Json
    others: list[Json]

    @property
    def name(self) -> str:
        return _name(self.node)

    @property
    def state(self) -> str:
        return str(self.node["provision_state"])


def plan(nodes: Sequence[Json]) -> tuple[list[Rotation], dict[str, str]]:
    """Return a rotation for each login, and why the other nodes have none, by name.

    A login needs one node that can run the step; rotations of one verb stand together.
    """
    by_login: dict[tuple[Any, ...], list[Json]] = {}
    refusals: dict[str, str] = {}
    for node in nodes:
        login = _login(node)
        if login is None:
            refusals[_name(node)] = "it has no BMC by Redfish or IPMI with a user and a password"
        else:
            by_login.setdefault(login, []).append(node)
    rotations = []
    for sharing in by_login.values():
        able = [node for node in sharing if _refusal(node) is None]
        if able:
            others = [node for node in sharing if node is not able[0]]
            rotations.append(Rotation(node=able[0], others=others))
        else:
            refusals |= {_name(node): str(_refusal(node)) for node in sharing}
    return sorted(rotations, key=lambda each: each.state), refusals


def _login(node: Json) -> tuple[Any, ...] | None:
    """Return the BMC and the user by the node's management interface; None without a login."""
    info = node["driver_info"]
    if node["management_interface"] == "ipmitool":
        login = info.get("ipmi_address"), str(info.get("ipmi_port") or 623)
        user, password = info.get("ipmi_username"), info.get("ipmi_password")
        return ("ipmi", *login, user) if login[0] and user and password else None
    address = str(info.get("redfish_address") or "")
    parts = urllib.parse.urlsplit(address if "://" in address else f"https://{address}")
    if not parts.hostname or not (info.get("redfish_username") and info.get("redfish_password")):
        return None
    return parts.hostname, parts.port or _PORTS.get(parts.scheme), info["redfish_username"]


def _refusal(node: Json) -> str | None:
    """Return why the node cannot run the step, or None."""
    if node["maintenance"]:
        return "it is in maintenance: end that first"
    if node["provision_state"] not in _VERBS:
        return (
            f"it is in {node['provision_state']}: passwords are changed in "
            f"{' and '.join(_VERBS)}; see bloomery node manage"
        )
    return None


def _name(node: Json) -> str:
    return str(node["name"] or node["uuid"])


@click.group(cls=groups.Group)
def password() -> None:
    """Change passwords of BMCs."""


@password.command()
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@groups.filtered
@click.option("--batch", "size", type=click.IntRange(1, 200), default=50, show_default=True,
              help="BMCs that change at a time.")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="Go on after a batch in which a node failed.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with one password for all.  [default: a random one for each BMC]",
)
@click.option("--timeout", "limit_s", type=groups.DURATION, default="15m", show_default=True,
              metavar="TIME", help="The longest time of a batch.")  # fmt: skip
@click.option("--cloud", "cloud_name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@groups.YES
@groups.AS_JSON
def rotate(
    nodes: tuple[str, ...],
    takes_all: bool,
    size: int,
    keep_going: bool,
    password_file: Path | None,
    limit_s: float,
    cloud_name: str | None,
    yes: bool,
    as_json: bool,
    **filters: str | None,
) -> None:
    """Change the passwords of the BMCs of nodes that are manageable or active.

    A batch ends before the next begins, and a failure ends the command after its batch.  Nodes with
    one BMC and user share a change.  The exit code is 1 where a password was not changed.
    """
    chosen = groups.chosen_filters(nodes, takes_all, filters)
    new = None
    if password_file is not None:
        new = password_file.read_text(encoding="utf-8").rstrip("\r\n")
    client = cloud.find(cloud_name).nodes
    if nodes:
        documents = [
            client.get(f"{path_of(node)}?fields={_FIELDS}") for node in dict.fromkeys(nodes)
        ]
    else:
        query = urllib.parse.urlencode(chosen | {"fields": _FIELDS, "limit": 1000})
        documents = list(client.pages(f"/v1/nodes?{query}", "nodes"))
    rotations, refusals = plan(documents)
    if rotations:
        question = f"Change the passwords of {len(rotations)} BMCs, with {len(documents)} nodes?"
        groups.confirm(question, yes=yes)
    results: list[Json] = []

    def note(name: str, error: str | None, leader: str) -> None:
        results.append({"node": name, "error": error})
        if not as_json:
            by = "" if name == leader else f" (with {leader})"
            terminal.echo(f"{name}: {error or 'changed'}{by}", err=error is not None)

    for name, reason in refusals.items():
        note(name, reason, name)
    has_failed = False
    for batch in _batches(rotations, size):
        ended: dict[str, str | None] = {each.name: "not begun, after a failure" for each in batch}
        if keep_going or not has_failed:
            ended = _run(client, batch, new, limit_s)
        has_failed |= any(ended.values())
        for each in batch:
            for name in (each.name, *map(_name, each.others)):
                note(name, ended.get(name, ended[each.name]), each.name)
    if as_json:
        click.echo(json.dumps(results, indent=2))
    if any(result["error"] for result in results):
        raise SystemExit(1)


def _batches(rotations: Sequence[Rotation], size: int) -> Iterator[Sequence[Rotation]]:
    """Yield parts of at most ``size``, each of one verb, since a request has one."""
    for state in _VERBS:
        ours = [each for each in rotations if each.state == state]
        for start in range(0, len(ours), size):
            yield ours[start : start + size]


def _run(
    client: Client, batch: Sequence[Rotation], new: str | None, limit_s: float
) -> dict[str, str | None]:
    """Change the passwords of a batch; return by node why one was not changed, or None.

    Nodes that share a change are in it if they do not show it.
    """
    verb = _VERBS[batch[0].state]
    args = {} if new is None else {"password": new}
    step = {"interface": "management", "step": "set_bmc_password", "args": args}
    order = {"target": verb, f"{verb}_steps": [step], "disable_ramdisk": True}
    ended: dict[str, str | None] = {}
    for part in batches([each.name for each in batch]):
        answer = client.post("/ext/v1/nodes:act", {"nodes": list(part), "provision": order})
        for result in answer["results"]:
            if result["error"]:
                ended[result["node"]] = result["error"]["message"]
    watch = Watch(client, limit_s)

    def read(name: str) -> Json:
        return watch.read(f"{path_of(name)}?fields={_PROGRESS}")

    def look(each: Rotation) -> None:
        """Note how a change ended, of which node; nothing while it goes on."""
        node = read(each.name)
        state = node["provision_state"]
        is_under_way = state in ("cleaning", "servicing", f"{verb} wait", f"{verb} hold")
        if node["reservation"] is None and not is_under_way:
            is_done = state == each.state and _is_changed(each.node, node)
            error = node["last_error"] or f"it is in {state}, with the old password"
            ended[each.name] = None if is_done else error
            for other in each.others if is_done else ():
                if not _is_changed(other, read(_name(other))):
                    ended[_name(other)] = (
                        f"it does not share the login of {each.name}: correct its password in "
                        "driver_info, and repeat"
                    )
        elif watch.is_over:
            ended[each.name] = f"it is in {state} after {limit_s:g} s"

    while left := [each for each in batch if each.name not in ended]:
        for each in left:
            try:
                look(each)
            except ApiError as exc:
                ended[each.name] = f"cannot tell whether it was changed: {exc}"
        if any(each.name not in ended for each in batch):
            time.sleep(_POLL_S)
    return ended


def _is_changed(before: Json, now: Json) -> bool:
    """Return whether the node shows another change than before."""
    other = now["driver_internal_info"].get(_OTHER_LOGIN) or {}
    is_new = other != before["driver_internal_info"].get(_OTHER_LOGIN)
    return is_new and other.get("role") == "former"  # the new one stands in driver_info
