"""The options that commands share, and what they are read into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from oslo_config import cfg

from bloomery import conf, errors, home

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
        default=home.default_path,
        metavar="DIR",
        help="Database, keys and clouds.yaml.  [default: ~/.local/state/bloomery]",
    )(command)


def read_conf(config_files: Sequence[str]) -> conf.Conf:
    """Return what the files configure.  Raises CannotStart that names file and option."""
    try:
        return conf.load(config_files)
    except (cfg.Error, ValueError) as exc:
        said = " ".join(str(exc).split())
        raise errors.CannotStart(reason=f"cannot use the configuration: {said}") from exc
