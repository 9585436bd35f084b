"""Shared parts of commands: groups with whole sentences in their help, options, a question."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

Json = dict[str, Any]

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
FILTERS: Final = ("driver", "resource_class", "conductor_group", "provision_state")  # of nodes
C = TypeVar("C", bound=Callable[..., Any])


def filtered(command: C) -> C:
    """Add options that choose nodes; their values come by the names of ``FILTERS``."""
    for option in (
        click.option(
            "--state", "provision_state", metavar="STATE", help="Only nodes in this state."
        ),
        click.option("--conductor-group", metavar="NAME", help="Only nodes of this group."),
        click.option("--resource-class", metavar="NAME", help="Only nodes of this class."),
        click.option("--driver", metavar="NAME", help="Only nodes with this driver."),
        click.option("--all", "takes_all", is_flag=True, help="All nodes that the filters leave."),
    ):
        command = option(command)
    return command


def chosen_filters(nodes: Sequence[str], takes_all: bool, filters: Mapping[str, Any]) -> Json:
    """Return the filters that are set.  Raises UsageError unless nodes are named, or chosen."""
    chosen = {name: value for name in FILTERS if (value := filters[name]) is not None}
    if nodes and (takes_all or chosen):
        raise click.UsageError("name nodes, or choose them by --all or by filters, not both")
    if not (nodes or takes_all or chosen):
        raise click.UsageError("name nodes, or choose them: --all, or filters such as --driver")
    return chosen


def batched(default: int) -> Callable[[C], C]:
    """Return a decorator for commands that go on by batches, of this size, and that ask first."""

    def decorate(command: C) -> C:
        for option in (
            AS_JSON,
            YES,
            click.option("--timeout", "limit_s", type=DURATION, default="4h", metavar="TIME",
                         show_default=True, help="The longest time of a batch."),
            click.option("--failures", "budget", type=click.IntRange(0), default=0,
                         show_default=True,
                         help="Begin no further batch after more failures than these."),
            click.option("--batch", "size", type=click.IntRange(1, 200), default=default,
                         show_default=True, help="Machines at a time."),
        ):  # fmt: skip
            command = option(command)
        return command

    return decorate


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
