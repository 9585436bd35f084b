"""``bloomery import ironic``: compare an Ironic with the service, and take machines over."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from bloomery.cli import cloud, groups, terminal
from bloomery.cli.imports import database, plan, site, takeover, writing
from bloomery.cli.imports.plan import LEFT, REFUSED, Row, Terms

Json = dict[str, Any]

_NEVER_COMES: Final = (
    "not read: networks of Neutron, images and objects of Swift; history and inventory of a node "
    "come with --take-over"
)


@click.group(name="import", cls=groups.Group)
def imports() -> None:
    """Take the machines of another service over."""


@imports.command()
@click.argument("nodes", nargs=-1, metavar="[NODE...]")
@click.option("--from", "old_name", metavar="CLOUD",
              help="Of clouds.yaml: the Ironic that has the machines.")  # fmt: skip
@click.option("--from-config", "config", metavar="FILE",
              type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Its ironic.conf: read its database, which has the passwords.")  # fmt: skip
@click.option("--cloud", "name", metavar="CLOUD",
              help="Of clouds.yaml: the service that gets them.  [default: $OS_CLOUD]")  # fmt: skip
@click.option("--secrets", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="YAML with the hidden parts of driver_info by node, '*' for all.")  # fmt: skip
@click.option("--instead", multiple=True, metavar="FIELD:OLD=NEW",
              help="Another value of a field of nodes; may be repeated.")  # fmt: skip
@click.option("--skip", is_flag=True, help="Leave refused nodes out.")
@click.option("--take-over", is_flag=True,
              help="Release imported nodes here, and put them into maintenance there.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Compare; change nothing.")
@groups.AS_JSON
def ironic(
    nodes: tuple[str, ...], old_name: str | None, config: Path | None, name: str | None,
    secrets: Path | None, instead: tuple[str, ...], skip: bool, take_over: bool, dry_run: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Import the nodes and records of an Ironic; --take-over hands nodes over.

    Give --from, --from-config or both: with both, the database is read, and --take-over tells the
    running Ironic. Without --from, --take-over needs that no conductor of the Ironic runs.

    An imported node is in maintenance here until it is taken over: no BMC is asked, and nothing is
    ordered. A second run creates what is missing and changes what has changed there. Nothing is
    written while a node is refused, except with --skip. NODE limits --take-over. Ends with 1 if
    something was refused.
    """
    if nodes and not take_over:
        raise click.UsageError("NODE limits --take-over: give both")
    terms = Terms(secrets=_secrets(secrets), instead=_instead(instead))
    with _old_site(old_name, config, take_over=take_over) as old:
        new = site.read(cloud.find_nodes(name))
        rows = plan.make(old, new, terms)
        if take_over:
            rows = list(takeover.rows(rows, nodes))
            work = takeover.carry_out(old, new, rows)
        else:
            work = writing.write(new.client, rows)
        refused = [row for row in rows if row.action == REFUSED]
        stops = dry_run or (refused and not skip)
        done = _echoed(rows if stops else work, as_json=as_json)
    _report(done, as_json=as_json, is_stopped=bool(refused and stops and not dry_run))
    if any(row.action == REFUSED for row in done):
        raise SystemExit(1)


@contextlib.contextmanager
def _old_site(name: str | None, config: Path | None, *, take_over: bool) -> Iterator[site.OldSite]:
    if name is None and config is None:
        raise click.UsageError("give --from CLOUD, --from-config FILE, or both")
    running = None if name is None else site.read(cloud.find_nodes(name))
    if config is None:
        assert running is not None
        yield running
        return
    with database.opened(config) as conn:
        old = database.read(conn, running)
        if take_over and running is None and (living := old.living()):
            raise click.ClickException(
                f"the old service still runs, on {', '.join(living)}: stop it and try again in two "
                "minutes, or give --from CLOUD as well"
            )
        yield old


def _secrets(path: Path | None) -> dict[str, Json]:
    if path is None:
        return {}
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as exc:
        raise click.ClickException(f"cannot read {path}: {type(exc).__name__}") from exc
    if not isinstance(document, dict) or not all(isinstance(v, dict) for v in document.values()):
        raise click.ClickException(f"{path} takes a map of nodes, each with parts of driver_info")
    return {str(node): parts for node, parts in document.items()}


def _instead(options: Sequence[str]) -> dict[tuple[str, str], str]:
    found = {}
    for option in options:
        field, colon, values = option.partition(":")
        old, sign, new = values.partition("=")
        if not (colon and sign and field and new):
            raise click.BadParameter(f"{option!r} is not FIELD:OLD=NEW", param_hint="--instead")
        found[field, old] = new
    return found


def _echoed(rows: Iterable[Row], *, as_json: bool) -> list[Row]:
    """Return the rows; print each as it comes, unless one document is asked for."""
    found = []
    for row in rows:
        found.append(row)
        if not as_json:
            terminal.echo(f"{row.kind} {row.name}: {row.action}")
            for words in (*row.faults, *(f"left out: {each}" for each in row.left_out)):
                terminal.echo(f"  {words}", err=True)
    return found


def _report(rows: Sequence[Row], *, as_json: bool, is_stopped: bool) -> None:
    if as_json:
        shown = ("kind", "uuid", "name", "action", "faults", "left_out")
        click.echo(
            json.dumps([{key: getattr(row, key) for key in shown} for row in rows], indent=2)
        )
        return
    actions = [row.action for row in rows]
    click.echo(terminal.tally("row", actions))
    click.echo(_NEVER_COMES)
    if is_stopped:
        click.echo("nothing was written: mend what is refused, or give --skip", err=True)
    elif LEFT in actions:
        click.echo("run it again for what was left out", err=True)
