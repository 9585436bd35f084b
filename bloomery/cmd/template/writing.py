"""Commands that print what they found, and say so in one sentence when it cannot be printed."""

from __future__ import annotations

import errno
import os
import sys

import click


class Writing(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a disk that is full is no bug, and whoever reads may have enough."""
        try:
            return super().invoke(ctx)
        except OSError as exc:
            if exc.errno == errno.EPIPE:
                raise  # click knows what to do
            _forget()
            raise click.ClickException(f"cannot print the rest: {exc.strerror or exc}") from exc


def _forget() -> None:
    """Lose what was not printed, which Python would try again, and complain of, at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except OSError:
        """Standard output is no file: then nothing is tried again."""
