"""Shared parts of commands: groups with whole sentences in their help, options, a question."""

from __future__ import annotations

import sys
from typing import Final

import click

INTERRUPTED: Final = 130  # as in shells: 128 and the number of the signal
YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")
AS_JSON: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead."
)
_WHOLE: Final = 1000  # characters; click's default cuts at the line's width


class Group(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_WHOLE))
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None
                ]
            )


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless ``yes``; end the command at a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException(
            "cannot ask, since standard input is no terminal: --yes goes on without asking"
        )
    click.confirm(question, abort=True)
