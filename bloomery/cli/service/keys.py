"""``bloomery keys``: make the key that seals secrets, replace it, or print what it signs with."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import click

from bloomery import conf, errors, key_file
from bloomery.cli import groups
from bloomery.cli.service import options
from bloomery.cli.service.key_rotation import Rotation, Stage
from bloomery.db import schema
from bloomery.state_dir import StateDir

_SETTLE_S: Final = 60.0


@click.group(cls=groups.Group)
def keys() -> None:
    """Make the key that seals secrets, replace it, or print the public keys of signatures."""


@keys.command()
@click.argument("file", type=click.Path(path_type=Path))
def make(file: Path) -> None:
    """Write a new key to FILE, readable by its owner alone; FILE must not exist."""
    try:
        key_file.make(file)
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot make the key file {file}: {exc.strerror}; choose another file"
        ) from exc
    click.echo(f"wrote {file}")


@keys.command()
@options.state_dir
@options.config_file
@click.option(
    "--shared",
    is_flag=True,
    help="All processes of the site read this file: they run on one host, or on a shared folder.",
)
@click.option("--copied", is_flag=True, help="Every host of the site has a copy of the file.")
@click.option(
    "--settle", type=click.FloatRange(min=0), default=_SETTLE_S, show_default=True,
    metavar="SECONDS", help="Longest request: it may still write what it has sealed before.",
)  # fmt: skip
def rotate(
    state_dir: Path, config_files: tuple[str, ...], shared: bool, copied: bool, settle: float
) -> None:
    """Replace the key: a new one seals, all sealed values are sealed anew, the old one goes.

    Services run meanwhile, and read the key file again. Run the command again after an
    interruption. With several hosts, the command says when to copy the file.
    """
    settings = conf.load(config_files)
    with StateDir(state_dir, role="keys") as home:
        database = home.existing_database(settings.database)
        schema.require_head(database, state_dir=home.path, config_files=config_files)
        sealer = home.sealer(database, settings.default.sealing_key_file)
        rotation = Rotation(
            db=database, file=key_file.KeyFile(home.key), sealer=sealer,
            wait=threading.Event().wait, say=click.echo,
        )  # fmt: skip
        run(rotation, is_shared=shared or database.is_sqlite, is_copied=copied, settle_s=settle)


@keys.command()
@options.state_dir
@options.config_file
def public(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Print the public keys that check proofs of erasure, the newest first."""
    settings = conf.load(config_files)
    with StateDir(state_dir, role="keys") as home:
        database = home.existing_database(settings.database)
        sealer = home.sealer(database, settings.default.sealing_key_file)
        click.echo("".join(sealer.public_keys()), nl=False)


def run(rotation: Rotation, *, is_shared: bool, is_copied: bool, settle_s: float) -> None:
    """Go through the stages; with copies of the file, stop where they must be renewed."""
    if rotation.stage() is Stage.IDLE:
        rotation.prepare()
        is_copied = False
    if rotation.stage() is Stage.PREPARED:
        _require_copies(rotation, is_shared or is_copied)
        rotation.begin()
        is_copied = False
    _require_copies(rotation, is_shared or is_copied)
    rotation.finish(settle_s)
    if not is_shared:
        click.echo("copy it to every host once more: the old key goes from there, too")


def _require_copies(rotation: Rotation, are_alike: bool) -> None:
    if not are_alike:
        raise errors.KeysNotCopied(path=str(rotation.file.path))
