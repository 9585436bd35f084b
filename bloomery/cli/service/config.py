"""``bloomery config``: print every option with its help, type, range and default.

The options of keystonemiddleware are included; they apply with auth_strategy = keystone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click
from oslo_config import cfg

from bloomery import conf
from bloomery.cli import groups


@click.group(cls=groups.Group)
def config() -> None:
    """Print a sample of the configuration."""


@config.command()
def sample() -> None:
    """Print a configuration file with every option at its default, commented out."""
    from keystoneauth1 import loading
    from keystonemiddleware import opts

    ((_, of_tokens),) = opts.list_auth_token_opts()
    of_keystone = [*of_tokens, *loading.get_auth_plugin_conf_options("password")]
    for group, options in (*conf.list_opts(), (conf.KEYSTONE_GROUP, of_keystone)):
        click.echo(f"[{group}]\n")
        for option in options:
            click.echo("\n".join(described(option)) + "\n")


def described(option: cfg.Opt) -> Iterator[str]:
    """Yield the lines of one option, in the form of oslo.config's samples."""
    yield from textwrap.wrap(
        f"{option.help} ({getattr(option.type, 'type_name', 'string value')})",
        width=90,
        initial_indent="# ",
        subsequent_indent="# ",
    )
    for bound, name in (("Minimum", "min"), ("Maximum", "max")):
        if (value := getattr(option.type, name, None)) is not None:
            yield f"# {bound} value: {value}"
    if choices := getattr(option.type, "choices", None):
        yield f"# Possible values: {', '.join(choices)}"
    yield f"#{option.dest} = {option.sample_default or shown(option.default)}"


def shown(default: object) -> str:
    """Return a default as in a configuration file."""
    if default is None:
        return "<None>"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ",".join(default)
    if isinstance(default, dict):
        return ",".join(f"{key}:{value}" for key, value in default.items())
    return str(default)
