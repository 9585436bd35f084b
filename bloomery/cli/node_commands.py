"""``bloomery node``: the commands of a day on machines, over the REST API.

clouds.yaml names the service (cloud.py).  A NODE is a name or a UUID.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, BinaryIO, Final, TextIO

import click

from bloomery import errors, parsing, signatures
from bloomery.cli import cloud, groups, terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.node_orders import POWER, NodeNotThere, Orders, Watching, path_of, power_order

NODE: Final = click.argument("node")
NODES: Final = click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
REASON: Final = click.option("--reason", metavar="TEXT", help="Shown with the node.")
_TO_SECONDS: Final = len("2026-11-28T23:45:10")
_CLOCK_DIFFERS_S: Final = 5
_PEM: Final = r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----"
_LONG: Final = frozenset(
    {"children", "links", "ports", "portgroups", "states", "volume"}  # of show
)

Json = dict[str, Any]
Function = Callable[..., None]


def watching(function: Function) -> Function:
    """Give a command --wait, --timeout and --json, as the parameter ``watching``."""

    @click.option(
        "--wait", is_flag=True, help="Watch until it is done; Ctrl-C ends the watching alone."
    )
    @click.option(
        "--timeout",
        "limit_s",
        type=groups.DURATION,
        metavar="TIME",
        help="The longest watch: seconds, or 15m, 4h.  [default: none]",
    )
    @groups.AS_JSON
    @functools.wraps(function)
    def command(*args: Any, wait: bool, limit_s: float | None, as_json: bool, **more: Any) -> None:
        options = Watching(wait=wait, limit_s=limit_s, as_json=as_json)
        function(*args, watching=options, **more)

    return command


@click.group(cls=groups.Group)
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@click.pass_context
def node(ctx: click.Context, name: str | None) -> None:
    """List, explain, deploy, switch and retire machines of a running service."""
    ctx.obj = lambda: cloud.find(name).nodes


Find = Callable[[], Client]


# -------------------------------------------------------------------------------------- looking


@node.command("list")
@click.option("--state", metavar="STATE", help="Only nodes in this provision state.")
@click.option("--problems", is_flag=True, help="Only nodes with a problem.")
@groups.AS_JSON
@click.pass_obj
def list_(find: Find, state: str | None, problems: bool, as_json: bool) -> None:
    """List the nodes, each with its problem."""
    client = find()
    if state is not None:
        names = [each["name"] for each in client.get("/ext/v1/states")["states"]]
        if state not in names:
            raise click.BadParameter(
                f"there is no state {state!r}.{errors.nearest(state, names)} The states: "
                f"{', '.join(names)}",
                param_hint="--state",
            )
    rows = [
        row for row in client.pages("/ext/v1/nodes?limit=1000", "nodes")
        if state in (None, row["provision_state"]) and (row["cause"] or not problems)
    ]  # fmt: skip
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        limits = [f"in {state}"] if state else []
        limits += ["with a problem"] if problems else []
        hint = "" if limits else "; bloomery enrol FILE creates some"
        click.echo(f"there is no node{' '.join(['', *limits])}{hint}", err=True)
        return
    heading = ("NAME", "STATE", "POWER", "CLASS", "PROBLEM")
    _echo_rows([heading, *(
        (row["name"] or row["uuid"], row["provision_state"], row["power_state"] or "-",
         row["resource_class"] or "-", terminal.brief(row["cause"] or ""))
        for row in rows
    )])  # fmt: skip


@node.command()
@NODE
@groups.AS_JSON
@click.pass_obj
def show(find: Find, node: str, as_json: bool) -> None:
    """Show the fields of a node that are set, and its child nodes, such as DPUs."""
    client = find()
    document = _get(client, node)
    document["children"] = _list_children(client, document["uuid"])
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    _echo_rows(
        (key, terminal.brief(value))
        for key, value in sorted(document.items())
        if key not in _LONG and value not in (None, {}, [], "")
    )
    if document["children"]:
        heading = ("CHILD", "STATE", "POWER", "PRODUCT", "SERIAL", "FIRMWARE")
        click.echo()
        _echo_rows([heading, *(
            (each["name"] or each["uuid"], each["provision_state"], each["power_state"] or "-",
             each["product"] or "-", each["serial"] or "-",
             ", ".join(f"{name} {version}" for name, version in each["firmware"].items()) or "-")
            for each in document["children"]
        )])  # fmt: skip


@node.command()
@NODE
@groups.AS_JSON
@click.pass_obj
def why(find: Find, node: str, as_json: bool) -> None:
    """Explain why a node is in its state, and what to do next."""
    document = _get(find(), node, "/ext", "/why")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    target = document["target_provision_state"]
    state = document["provision_state"] + (f", on the way to {target}" if target else "")
    terminal.echo(f"{document['name'] or document['uuid']}: {state}")
    terminal.echo(f"  {document['cause']}")
    if step := document["step"]:
        others = document["cause"] + document["next_action"]
        reason = f": {step['reason']}" if step["reason"] and step["reason"] not in others else ""
        terminal.echo(f"  step {step['position']} of {step['of']}, {step['name']}{reason}")
    error = document["last_error"] and document["last_error"]["now"]
    if error and error not in document["cause"]:
        terminal.echo(f"  last error: {error}")
    logged = document["last_error"] and document["last_error"].get("bmc_logged")
    if logged and logged not in document["cause"]:
        terminal.echo(f"  {logged}")
    if cleaned := document.get("last_cleaned"):
        steps = ", ".join(cleaned["steps"])
        terminal.echo(f"  last cleaned: {cleaned['at'][:_TO_SECONDS]}, by {steps}")
    if outdated := document.get("outdated_firmware"):
        versions = (
            f"{each['component']} {each['current_version'] or 'unknown'}, to be "
            f"{each['catalogue_version']}"
            for each in outdated
        )
        terminal.echo(f"  firmware out of date: {'; '.join(versions)} (bloomery firmware plan)")
    terminal.echo(f"next: {document['next_action']}")


@node.command()
@NODE
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@groups.AS_JSON
@click.pass_obj
def timeline(find: Find, node: str, limit: int, as_json: bool) -> None:
    """Print the newest steps and events of a node, oldest first."""
    document = _get(find(), node, "/ext", f"/timeline?limit={limit}")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    entries = list(reversed(document["timeline"]))
    if entries:
        _echo_rows(map(_entry, entries))
    else:
        click.echo("no events yet", err=True)


@node.command("bmc-log")
@NODE
@groups.AS_JSON
@click.pass_obj
def bmc_log(find: Find, node: str, as_json: bool) -> None:
    """Print the newest entries of the BMC's own log (SEL), oldest first."""
    document = _get(find(), node, "/ext", "/bmc_log")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    entries = list(reversed(document["entries"]))
    _echo_rows(
        ((each["created_at"] or "-")[:_TO_SECONDS], each["severity"] or "-", each["message"])
        for each in entries
    )
    if not entries:
        log = "the BMC has no log" if document["name"] is None else "the BMC's log is empty"
        click.echo(log, err=True)
    difference_s = document["clock_difference_s"] or 0
    if abs(difference_s) >= _CLOCK_DIFFERS_S:
        way = "ahead of" if difference_s > 0 else "behind"
        clock = f"the BMC's clock is {abs(difference_s):.0f} s {way} the conductor's"
        click.echo(f"{clock}; so are these times", err=True)


@node.command()
@NODE
@groups.AS_JSON
@click.pass_obj
def sensors(find: Find, node: str, as_json: bool) -> None:
    """Print what the sensors of a node measured in the last hours."""
    document = _get(find(), node, "/ext", "/sensors")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    rows = [("SENSOR", "VALUE", "UNIT", "STATUS", "LEAST", "GREATEST", "READ AT")]
    for each in document["sensors"]:
        values = [value for _, value in each["readings"]]
        facts = (each["unit"] or "-", each["status"] or "-", f"{min(values):g}", f"{max(values):g}")
        at = each["readings"][-1][0][:_TO_SECONDS]
        rows.append((each["name"], f"{values[-1]:g}", *facts, at))
    if document["sensors"]:
        _echo_rows(rows)
        click.echo(f"kept since {document['kept_since'][:_TO_SECONDS]}", err=True)
    elif document["is_read"]:
        click.echo(f"no reading yet; one comes every {document['interval_s']} s", err=True)
    if document["reason"]:
        click.echo(document["reason"], err=True)


@node.command()
@NODE
@groups.AS_JSON
@click.pass_obj
def erasure(find: Find, node: str, as_json: bool) -> None:
    """Show which disks were erased, newest first; --json prints the signed proof."""
    document = _get(find(), node, "/ext", "/erasure")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    for each in document["proof"]["erasures"]:
        terminal.echo(f"{each['ended_at']}  {each['step']}: {'; '.join(each['methods'])}")
        _echo_rows(
            ("", disk["name"], disk["serial"] or "-", disk["model"] or "-",
             "erased" if disk["is_erased"] else "NOT ERASED")
            for disk in each["disks"]
        )  # fmt: skip
    for disk in document["proof"]["missing"]:
        terminal.echo(
            f"not erased since the last inspection: {disk['name']} {disk['serial'] or ''}"
        )
    if not document["proof"]["erasures"]:
        click.echo("no erasure is recorded", err=True)


@node.command("check-erasure")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--public-key", type=click.File(), required=True, metavar="FILE",
    help="Public keys that you trust, as bloomery keys public prints them.",
)  # fmt: skip
def check_erasure(file: BinaryIO, public_key: TextIO) -> None:
    """Check the signature of a proof: the output of erasure --json.  Needs no service."""
    try:
        document = parsing.load_json(file.read())
        proof, signature = document["proof"], document["signature"] or {"value": ""}
        keys = re.findall(_PEM, public_key.read(), re.DOTALL)
        is_signed = any(signatures.is_valid(proof, signature, key) for key in keys)
    except (ValueError, KeyError, TypeError) as exc:
        raise click.ClickException(f"cannot check {file.name}: {exc!r}") from exc
    if not is_signed:
        raise click.ClickException(
            f"none of the {len(keys)} public keys has signed {file.name}, or it was changed"
        )
    click.echo(f"{file.name} is signed, and unchanged")


@node.command()
@NODE
@click.option("--read-only", is_flag=True, help="Type nothing, whatever the keyboard sends.")
@click.pass_obj
def console(find: Find, node: str, read_only: bool) -> None:
    """Open the serial console of a node; ~. at the begin of a line ends it, ~? helps."""
    from bloomery.cli.console import Console, Session  # slow to import, and for this command alone

    client, subpath = find(), f"/console?read_only={read_only}"
    state = _get(client, node, "/ext", subpath)
    if not state["console_enabled"]:
        raise click.ClickException(f"the console of {node} is not enabled; {state['advice']}")
    Session(
        lambda: Console(client, f"/ext{path_of(node)}{subpath}"),
        sys.stdin.buffer,
        sys.stdout.buffer,
        say=lambda message: click.echo(f"\r\n[{terminal.visible(message)}]\r", err=True),
    ).run()


# -------------------------------------------------------------------------------------- orders


@node.command()
@NODES
@watching
@click.pass_obj
def manage(find: Find, nodes: tuple[str, ...], watching: Watching) -> None:
    """Check the BMC, and take nodes to manageable."""
    _provision(Orders(find(), nodes, "manage", watching), "manage", "manageable")


def _add_cleaning(name: str, target: str, question: str, summary: str) -> None:
    """Add a command that asks first, and ends in available; cleaning may erase disks."""

    @node.command(name, help=summary)
    @NODES
    @watching
    @groups.YES
    @click.pass_obj
    def command(find: Find, nodes: tuple[str, ...], watching: Watching, yes: bool) -> None:
        groups.confirm(question.format(_listed(nodes)), yes=yes)
        _provision(Orders(find(), nodes, name, watching), target, "available")


_add_cleaning(
    "provide", "provide", "Clean {}? Cleaning may erase the disks.",
    "Clean nodes, and make them available; cleaning may erase their disks.",
)  # fmt: skip


@node.command()
@NODES
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE",
              help="A key of instance_info, such as image_source; may be repeated.")  # fmt: skip
@click.option(
    "--user-data",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="What cloud-init of the image reads, by a config drive; -: standard input.",
)
@click.option("--check", "only_checks", is_flag=True,
              help="Deploy nothing; say whether the nodes could be deployed, and their files "
              "fetched.  --set is stored.")  # fmt: skip
@watching
@click.pass_obj
def deploy(
    find: Find, nodes: tuple[str, ...], pairs: tuple[str, ...], user_data: TextIO | None,
    only_checks: bool, watching: Watching,
) -> None:  # fmt: skip
    """Deploy available nodes."""
    if user_data and only_checks:
        raise click.UsageError("--user-data is for a deployment; --check deploys nothing")
    more = {"configdrive": {"user_data": user_data.read()}} if user_data else {}
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise click.UsageError(f"--set needs KEY=VALUE, not {key}")
        values[key.replace("~", "~0").replace("/", "~1")] = value  # as a JSON pointer
    patch = [
        {"op": "add", "path": f"/instance_info/{key}", "value": value}
        for key, value in values.items()
    ]
    orders = Orders(find(), nodes, "deploy", watching)
    if patch:
        orders.send(lambda to, path: to.patch(path, patch), "instance_info set")
        orders.stop_if_refused()
    if only_checks:
        orders.send(_require_valid, "could be deployed")
        orders.end()
        return
    _provision(orders, "active", "active", more)


def _require_valid(to: Client, path: str) -> None:
    """Raise ApiError with the reasons why a node cannot be deployed."""
    node, results = to.get(path), to.get(f"{path}/validate")
    reasons = [f"{kind}: {results[kind]['reason']}" for kind in ("power", "network", "deploy")
               if results[kind]["result"] is False]  # fmt: skip
    if node["maintenance"]:
        reasons.append("it is in maintenance")
    if node["provision_state"] != "available":
        reasons.append(f"it is in {node['provision_state']}, and not in available")
    if reasons:
        raise ApiError(reason="; ".join(reasons), answer=400)


_add_cleaning(
    "undeploy", "deleted", "Undeploy {}? The data is lost.",
    "Free deployed nodes, and clean them; their data is lost.",
)  # fmt: skip


@node.command()
@click.argument("action", type=click.Choice(list(POWER)))
@NODES
@click.option("--soft", is_flag=True, help="Ask the operating system to stop.")
@watching
@click.pass_obj
def power(find: Find, action: str, nodes: tuple[str, ...], soft: bool, watching: Watching) -> None:
    """Switch nodes on or off, or reboot them."""
    order = power_order(action, soft=soft)
    orders = Orders(find(), nodes, f"power {action}", watching)
    orders.act(order)
    orders.watch(POWER[action], "power_state")
    orders.end()


@node.command()
@click.argument("action", type=click.Choice(["on", "off"]))
@NODES
@REASON
@groups.AS_JSON
@click.pass_obj
def maintenance(
    find: Find, action: str, nodes: tuple[str, ...], reason: str | None, as_json: bool
) -> None:
    """Take nodes into maintenance, or out of it."""
    if action == "off" and reason is not None:
        raise click.UsageError("--reason is for on")
    orders = Orders(find(), nodes, "maintenance", Watching(as_json=as_json))
    orders.act({"maintenance": {"on": action == "on", "reason": reason}})
    orders.end()


@node.command()
@NODES
@REASON
@click.option("--undo", is_flag=True, help="End the retirement.")
@groups.AS_JSON
@click.pass_obj
def retire(
    find: Find, nodes: tuple[str, ...], reason: str | None, undo: bool, as_json: bool
) -> None:
    """Retire nodes: no allocation takes them, and after a cleaning they are manageable."""
    if undo and reason is not None:
        raise click.UsageError("--reason is for a retirement, not for its end")
    patch: list[Json] = [{"op": "replace", "path": "/retired", "value": not undo}]
    if reason is not None:
        patch.append({"op": "add", "path": "/retired_reason", "value": reason})
    orders = Orders(find(), nodes, "retire", Watching(as_json=as_json))
    orders.send(lambda to, path: to.patch(path, patch))
    orders.end()


@node.command()
@NODES
@groups.YES
@groups.AS_JSON
@click.pass_obj
def delete(find: Find, nodes: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete nodes and their ports from the service; the machines stay as they are."""
    groups.confirm(f"Delete {_listed(nodes)}?", yes=yes)
    orders = Orders(find(), nodes, "delete", Watching(as_json=as_json))
    orders.send(lambda to, path: to.delete(path))
    orders.end()


@node.command()
@NODES
@click.option("--force", is_flag=True, help="Also nodes with an instance, which goes on running.")
@groups.YES
@groups.AS_JSON
@click.pass_obj
def forget(find: Find, nodes: tuple[str, ...], force: bool, yes: bool, as_json: bool) -> None:
    """End all work on nodes, and remove their records; power and disks stay as they are."""
    groups.confirm(f"Forget {_listed(nodes)}, whatever is done there now?", yes=yes)
    orders = Orders(find(), nodes, "forget", Watching(as_json=as_json))
    query = "?force=true" if force else ""
    orders.send(lambda to, path: to.put(f"/ext{path}/forget{query}", None))
    orders.end()


@node.command()
@NODES
@groups.AS_JSON
@click.pass_obj
def abort(find: Find, nodes: tuple[str, ...], as_json: bool) -> None:
    """End the work that waits on nodes, where its step may be ended."""
    orders = Orders(find(), nodes, "abort", Watching(as_json=as_json))
    orders.act({"provision": {"target": "abort"}})
    orders.end()


# ------------------------------------------------------------------------------------- helpers


def _provision(orders: Orders, target: str, state: str, more: Json | None = None) -> None:
    """Order a provision state of the nodes, watch until ``state`` if that is wanted, and end.

    ``more``: other keys of the order's body.
    """
    orders.act({"provision": {"target": target} | (more or {})})
    orders.watch(state)
    orders.end()


def _get(client: Client, node: str, root: str = "", subpath: str = "") -> Json:
    """Return a document of a node.  Raises NodeNotThere."""
    try:
        document: Json = client.get(f"{root}{path_of(node)}{subpath}")
    except ApiError as exc:
        if exc.facts["answer"] == HTTPStatus.NOT_FOUND:
            raise NodeNotThere(node=node) from None
        raise
    return document


def _list_children(client: Client, uuid: str) -> list[Json]:
    """Return the child nodes of a node, with what their last inspection and firmware list say."""
    fields = "uuid,name,driver,provision_state,power_state"
    children = list(client.pages(f"/v1/nodes?parent_node={uuid}&fields={fields}", "nodes"))
    for child in children:
        child.pop("links", None)
        inventory = _find(client, child["uuid"], "/inventory").get("inventory") or {}
        vendor = inventory.get("system_vendor") or {}
        child |= {"product": vendor.get("product_name"), "serial": vendor.get("serial_number")}
        child["firmware"] = {
            each["component"]: each["current_version"]
            for each in _find(client, child["uuid"], "/firmware").get("firmware") or ()
        }
    return children


def _find(client: Client, uuid: str, subpath: str) -> Json:
    """Return a document of a node, {} where there is none, or not for this user."""
    try:
        document: Json = client.get(f"{path_of(uuid)}{subpath}")
    except ApiError as exc:
        if exc.facts["answer"] in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return {}
        raise
    return document


def _listed(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes)})"


def _entry(entry: Json) -> tuple[Any, ...]:
    if entry["kind"] == "step":
        took = "" if entry.get("duration_s") is None else f"{entry['duration_s']:.1f} s"
        text = f"{entry.get('flow') or ''} {entry.get('name') or ''}: {entry.get('state') or ''}"
        more = entry.get("error") or entry.get("reason") or ""
    else:
        took, text = "", entry.get("event") or entry.get("event_type") or ""
        more = entry.get("provision_state") or ""
    return f"{entry['at'][:_TO_SECONDS]}Z", took, text.strip(), terminal.brief(more)


def _echo_rows(rows: Iterable[Iterable[Any]]) -> None:
    for line in terminal.columns([tuple(row) for row in rows]):
        click.echo(line)
