"""Groups of commands whose help says each command's first sentence as a whole."""

from __future__ import annotations

from typing import Final

import click

_WHOLE: Final = 1000  # characters: click cuts at the width of one line, the rest is lost


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
