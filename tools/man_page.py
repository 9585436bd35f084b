#!/usr/bin/env python3
"""Write contrib/man/bloomery.1, the manual page of all commands, as each explains itself.

The wheel has the page, below share/man; a test tells when it is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from bloomery.cli.main import main

PAGE: Final = Path(__file__).resolve().parent.parent / "contrib/man/bloomery.1"
HEAD: Final = r"""
.TH BLOOMERY 1 "" "Bloomery" "User Commands"
.SH NAME
bloomery \- take racks of bare\-metal machines from plugged in to running
.SH SYNOPSIS
.B bloomery
.I COMMAND
[\fIOPTION\fR]... [\fIARGUMENT\fR]...
.SH DESCRIPTION
Bloomery serves the APIs of OpenStack Ironic and Heat. The services run by
.BR "bloomery serve" ,
or apart by
.BR "bloomery api" ,
.B bloomery conductor
and
.BR "bloomery engine" .
The other commands look after a service, or ask one that clouds.yaml names.
.SH EXIT STATUS
.TP
.B 0
The command did what it was asked for.
.TP
.B 1
The command refused or failed; standard error has the reason.
.TP
.B 2
The command line is wrong.
.TP
.B 130
Ctrl-C ended the command.
.SH ENVIRONMENT
.TP
.BR OS_CLOUD ", " OS_CLIENT_CONFIG_FILE
The service to ask, and the file that names services, as for other clients of OpenStack.
.TP
.B NO_COLOR
No colours.
.SH FILES
.TP
.I STATE_DIR/clouds.yaml
The running service on this machine, for clients.
.TP
.I /etc/bloomery/bloomery.conf
The configuration that the units of systemd give to the services.
.SH COMMANDS
""".lstrip()


def page() -> str:
    return HEAD + "".join(_command(main, main.make_context("bloomery", [], resilient_parsing=True)))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    context.terminal_width = 78
    if context.parent is not None:
        yield f".SS {_escaped(context.command_path)}\n"
        yield f".nf\n{_escaped(command.get_help(context))}\n.fi\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _command(child, click.Context(child, parent=context, info_name=name))


def _escaped(text: str) -> str:
    """Return text that roff shows as it is."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
