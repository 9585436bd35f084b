"""``bloomery status``: the site on one screen, and what to see to before an upgrade.

bloomery status                 # of a running service, over its API
bloomery status check           # of the database and the configuration
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from bloomery import errors
from bloomery.cli import cloud, groups, status_text, terminal
from bloomery.cli.service import options

_UNANSWERED: Final = 2
_STYLES: Final = ("green", "yellow", "bold red")  # of upgrade_checks.SEVERITIES


@click.group(cls=groups.Group, invoke_without_command=True)
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@groups.AS_JSON
@click.pass_context
def status(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Show a running service on one screen; check a site before an upgrade.

    Exit codes: 0 where nothing is wrong, 1 where something is, 2 where the service did not answer.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        document = status_text.read(cloud.find(name))
    except errors.Failure as exc:
        click.echo(f"Error: {terminal.visible(str(exc))}", err=True)
        raise SystemExit(_UNANSWERED) from exc
    problems = status_text.problems(document)
    if as_json:
        click.echo(json.dumps({**document, "problems": problems}, indent=2))
        raise SystemExit(bool(problems))
    from rich.table import Table
    from rich.text import Text

    console, table = terminal.console(), Table(box=None, show_header=False, pad_edge=False)
    for heading, text in status_text.lines(document):
        table.add_row(Text(heading, style="bold"), Text(terminal.visible(text)))
    verdict = terminal.amount(len(problems), "problem") if problems else "nothing is wrong"
    console.print(
        Text(f"Bloomery {document['release']} at {document['url']}: {verdict}",
             style="bold red" if problems else "green")
    )  # fmt: skip
    for problem in problems:
        console.print(Text(f"  - {terminal.visible(problem)}"))
    console.print(table)
    raise SystemExit(bool(problems))


@status.command()
@options.state_dir
@options.config_file
@groups.AS_JSON
def check(state_dir: Path, config_files: tuple[str, ...], as_json: bool) -> None:
    """Check the site with the new release before an upgrade; nothing is changed.

    Exit codes: 0 where all is well, 1 with a warning, 2 with a failure.
    """
    from rich.table import Table
    from rich.text import Text

    from bloomery.cli.service import upgrade_checks

    results = upgrade_checks.run(state_dir, config_files)
    severities = [upgrade_checks.SEVERITIES.index(each.result) for each in results]
    if as_json:
        click.echo(json.dumps([each._asdict() for each in results], indent=2))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for each, severity in zip(results, severities, strict=True):
            result = Text(each.result, style=_STYLES[severity])
            table.add_row(each.name, result, Text(terminal.visible(each.text)))
        terminal.console().print(table)
    raise SystemExit(max(severities))
