"""``bloomery stack history`` and ``diff``: what each update made of a stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import click

from bloomery.cli import cloud, groups, stacks, terminal
from bloomery.cli.stacks import Json

NUMBER: Final = click.IntRange(min=1)
COUNTS: Final = {
    "created": "{} created", "updated": "{} updated", "serviced": "{} serviced",
    "rebuilt": "{} rebuilt", "deleted": "{} deleted", "failed": "{} failed",
    "data_lost": "data of {} lost",
}  # fmt: skip

Find = Callable[[], cloud.Cloud]


@click.command()
@click.argument("name")
@groups.AS_JSON
@click.pass_obj
def history(find: Find, name: str, as_json: bool) -> None:
    """List the revisions of a stack, newest first: each create and update, and what it did.

    An asterisk marks the one whose template the stack has.
    """
    service = find()
    uuid = stacks.get(service.orchestration, name)["id"]
    revisions = service.extensions.get(f"/ext/v1/stacks/{uuid}/revisions")["revisions"]
    if as_json:
        click.echo(json.dumps(revisions, indent=2))
        return
    rows = [("REVISION", "STATE", "BEGAN", "BY", "DID")]
    for each in revisions:
        mark = "*" if each["is_current"] else ""
        number, user = f"{each['revision']}{mark}", each["user"] or "-"
        rows.append((number, each["state"], each["began_at"], user, _did(each)))
    for line in terminal.columns(rows):
        click.echo(line)


def _did(revision: Json) -> str:
    counts = [text.format(n) for key, text in COUNTS.items() if (n := revision["counts"][key])]
    failed = revision["state"].endswith("FAILED")
    return "; ".join([", ".join(counts) or "-", *([revision["state_reason"]] if failed else [])])


@click.command()
@click.argument("name")
@click.argument("before", metavar="REVISION1", type=NUMBER)
@click.argument("after", metavar="REVISION2", type=NUMBER)
@groups.AS_JSON
@click.pass_obj
def diff(find: Find, name: str, before: int, after: int, as_json: bool) -> None:
    """Show what differs between two revisions of a stack: template, parameters and files."""
    service = find()
    uuid = stacks.get(service.orchestration, name)["id"]
    path = f"/ext/v1/stacks/{uuid}/revisions/{before}/diff/{after}"
    document = service.extensions.get(path)
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    for each in document["differences"]:
        if "lines" in each:
            terminal.echo(f"{each['path']}:")
            for line in each["lines"] or ["an empty file came or went"]:
                terminal.echo(f"  {line}")
            continue
        values = "differs" if "hidden" in each else (
            f"{terminal.brief(each['before'])} -> {terminal.brief(each['after'])}"
        )  # fmt: skip
        hidden = f" ({each['hidden']})" if "hidden" in each else ""
        terminal.echo(f"{each['path']}: {values}{hidden}")
    if not document["differences"]:
        click.echo(f"revisions {before} and {after} are equal", err=True)
