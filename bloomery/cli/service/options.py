"""The options shared by commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bloomery.conf import Conf
from bloomery.state_dir import default_path

F = TypeVar("F", bound=Callable[..., Any])


def config_file(command: F) -> F:
    """Give ``command`` the parameter ``config_files``."""
    return click.option(
        "--config-file",
        "config_files",
        multiple=True,
        metavar="FILE",
        help="oslo.config INI file; may be repeated, later ones win.",
    )(command)


def state_dir(command: F) -> F:
    """Give ``command`` the parameter ``state_dir``."""
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path),
        default=default_path,
        metavar="DIR",
        help="Database, keys and clouds.yaml.  [default: ~/.local/state/bloomery]",
    )(command)


def addresses(command: F) -> F:
    """Give ``command`` the parameters ``host_ip``, ``port`` and ``orchestration_port``."""
    for option in (
        click.option(
            "--orchestration-port",
            type=click.IntRange(0, 65535),
            help="Port of the orchestration API; 0: any.  [default: 8004]",
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535), help="API port; 0: any.  [default: 6385]"
        ),
        click.option(
            "--host", "host_ip", metavar="ADDRESS", help="Listen here.  [default: 127.0.0.1]"
        ),
    ):
        command = option(command)
    return command


def listening_on(
    settings: Conf,
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None = None,
) -> Conf:
    """Return the settings with the addresses of the command line, if any."""
    values: dict[str, Any] = {"host_ip": host_ip, "port": port}
    addresses = {name: value for name, value in values.items() if value is not None}
    orchestration = settings.orchestration
    if orchestration_port is not None:
        orchestration = dataclasses.replace(orchestration, port=orchestration_port)
    return dataclasses.replace(
        settings, api=dataclasses.replace(settings.api, **addresses), orchestration=orchestration
    )
