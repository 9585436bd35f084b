"""``bloomery config``: print every option with its help, type, range and default."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click
from oslo_config import cfg

from bloomery import conf


@click.group()
def config() -> None:
    """Print a sample of the configuration."""


@config.command()
def sample() -> None:
    """Print a configuration file with every option at its default, commented out."""
    for group, options in conf.list_opts():
        click.echo(f"[{group}]\n")
        for option in options:
            click.echo("\n".join(described(option)) + "\n")


def described(option: cfg.Opt) -> Iterator[str]:
    """Yield the lines on one option, in the form of oslo.config's own samples."""
    yield from textwrap.wrap(
        f"{option.help} ({option.type.type_name})",
        width=90,
        initial_indent="# ",
        subsequent_indent="# ",
    )
    for bound, name in (("Minimum", "min"), ("Maximum", "max")):
        if (value := getattr(option.type, name, None)) is not None:
            yield f"# {bound} value: {value}"
    if choices := getattr(option.type, "choices", None):
        yield f"# Possible values: {', '.join(choices)}"
    yield f"#{option.name} = {option.sample_default or shown(option.default)}"


def shown(default: object) -> str:
    """Return a default as the file would say it."""
    if default is None:
        return "<None>"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ",".join(default)
    if isinstance(default, dict):
        return ",".join(f"{key}:{value}" for key, value in default.items())
    return str(default)
