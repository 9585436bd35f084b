"""Options and printed rows that imports and exports share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from bloomery import parsing
from bloomery.cli import terminal
from bloomery.cli.imports.plan import REFUSED, Row, Terms

Json = dict[str, Any]

SECRETS: Final = click.option(
    "--secrets", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="YAML with the hidden parts of driver_info by node, '*' for all.",
)  # fmt: skip
INSTEAD: Final = click.option(
    "--instead", multiple=True, metavar="FIELD:OLD=NEW",
    help="Another value of a field of nodes; may be repeated.",
)  # fmt: skip
SKIP: Final = click.option("--skip", is_flag=True, help="Leave refused nodes out.")
DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Compare; change nothing.")
_KEYS: Final = ("kind", "uuid", "name", "action", "faults", "left_out")


def of(secrets: Path | None, instead: Sequence[str]) -> Terms:
    """Return the terms that the options name.  Raises ClickException."""
    values_instead = {}
    for option in instead:
        field, colon, values = option.partition(":")
        old, sign, new = values.partition("=")
        if not (colon and sign and field and new):
            raise click.BadParameter(f"{option!r} is not FIELD:OLD=NEW", param_hint="--instead")
        values_instead[field, old] = new
    if secrets is None:
        return Terms(instead=values_instead)
    try:
        document = parsing.load_yaml(secrets.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as exc:
        raise click.ClickException(f"cannot read {secrets}: {type(exc).__name__}") from exc
    if not isinstance(document, dict) or not all(isinstance(v, dict) for v in document.values()):
        raise click.ClickException(
            f"{secrets} takes a map of nodes, each with parts of driver_info"
        )
    parts = {str(node): each for node, each in document.items()}
    return Terms(secrets=parts, instead=values_instead)


def stops(rows: Iterable[Row], *, skip: bool) -> bool:
    """Return whether nothing may be written, since a row is refused."""
    return not skip and any(row.action == REFUSED for row in rows)


def echoed(rows: Iterable[Row], *, as_json: bool) -> list[Row]:
    """Return the rows; print each as it comes, or one document at the end."""
    printed = []
    for row in rows:
        printed.append(row)
        if not as_json:
            terminal.echo(f"{row.kind} {row.name}: {row.action}")
            for words in (*row.faults, *(f"left out: {each}" for each in row.left_out)):
                terminal.echo(f"  {words}", err=True)
    if as_json:
        click.echo(json.dumps([{key: getattr(row, key) for key in _KEYS} for row in printed],
                              indent=2))  # fmt: skip
    else:
        click.echo(terminal.tally("row", [row.action for row in printed]))
    return printed


def end(rows: Iterable[Row], *, is_stopped: bool) -> None:
    """End the command with 1 if a row is refused."""
    if not any(row.action == REFUSED for row in rows):
        return
    if is_stopped:
        click.echo("nothing was written: mend what is refused, or give --skip", err=True)
    raise SystemExit(1)
