"""Shared parts of commands: groups with whole sentences in their help, options, a question."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import click

BMC_PASSWORD: Final = "BLOOMERY_BMC_PASSWORD"  # noqa: S105  name of a variable
INTERRUPTED: Final = 130  # as in shells: 128 and the number of the signal
YES: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
AS_JSON: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead."
)
_WHOLE: Final = 1000  # characters; click's default cuts at the line's width


class Document(click.ParamType):
    """A path of a file that is there, a URL, or - for standard input."""

    name = "file"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if value != "-" and "://" not in value and not Path(value).is_file():
            self.fail(f"there is no file {value}", param, ctx)
        return str(value)


class Duration(click.ParamType):
    """Seconds, or a number with a unit: 90, 90s, 15m, 4h."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is no time: write 90 (seconds), 90s, 15m or 4h", param, ctx)
        return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


DOCUMENT: Final = Document()
DURATION: Final = Duration()


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


def ask_password(prompt: str, way_out: str, *, twice: bool = False) -> str:
    """Ask for a password, which is not shown.  Raises UsageError without a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"cannot ask for the password, since standard input is no terminal: {way_out}"
        )
    password: str = click.prompt(prompt, hide_input=True, err=True, confirmation_prompt=twice)
    return password


def read_bmc_password(file: Path | None) -> str:
    """Return a BMC's password: of the file, of the variable, or asked for."""
    if file is not None:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    password = os.environ.get(BMC_PASSWORD)
    way_out = f"name --password-file, or set {BMC_PASSWORD}"
    return ask_password("Password of the BMC", way_out) if password is None else password


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless ``yes``; end the command at a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "cannot ask, since standard input is no terminal: --yes goes on without asking"
        )
    click.confirm(question, abort=True)
