"""Command groups whose help shows each command's whole first sentence."""

from __future__ import annotations

from typing import Final

import click

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
