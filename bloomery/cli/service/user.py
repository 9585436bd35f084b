"""``bloomery user``: the logins of ``auth_strategy = http_basic``, in their file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import click

from bloomery import conf, errors, htpasswd
from bloomery.cli import groups
from bloomery.cli.service import options

F = TypeVar("F", bound=Callable[..., Any])

_OPTION: Final = "[DEFAULT]http_basic_auth_user_file"


def _file(command: F) -> F:
    """Give ``command`` the parameters ``config_files`` and ``file``."""
    return options.config_file(
        click.option(
            "--file", type=click.Path(path_type=Path), metavar="FILE",
            help=f"File of logins; without it, that of {_OPTION}.",
        )(command)
    )  # fmt: skip


def _password_file(command: F) -> F:
    return click.option(
        "--password-file", type=click.File(encoding="utf-8"), metavar="FILE",
        help="Password, in the first line; -: standard input.",
    )(command)  # fmt: skip


@click.group(cls=groups.Group)
def user() -> None:
    """Add, list and remove the logins of auth_strategy = http_basic.

    A running service takes a change at the next request. Each login may do everything.
    """


@user.command("list")
@_file
def list_(**place: Any) -> None:
    """Print the names of the logins."""
    for name in htpasswd.PasswordFile(_path(**place), _OPTION).hashes():
        click.echo(name)


@user.command()
@click.argument("name")
@_password_file
@_file
def add(name: str, password_file: TextIO | None, **place: Any) -> None:
    """Add the login NAME; a missing file is made, for its owner alone."""
    entry = htpasswd.entry(name, _password(password_file))

    def edit(lines: dict[str, str]) -> None:
        if name in lines:
            raise errors.CannotStart(
                reason=f"cannot add {name}: it is there; bloomery user password {name} changes it"
            )
        lines[name] = entry

    _change(edit, **place)
    click.echo(f"added {name}")


@user.command()
@click.argument("name")
@_password_file
@_file
def password(name: str, password_file: TextIO | None, **place: Any) -> None:
    """Change the password of the login NAME."""
    entry = htpasswd.entry(name, _password(password_file))

    def edit(lines: dict[str, str]) -> None:
        _require(lines, name, "change the password of")
        lines[name] = entry

    _change(edit, **place)
    click.echo(f"changed the password of {name}")


@user.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Remove the last login without asking.")
@_file
def remove(name: str, yes: bool, **place: Any) -> None:
    """Remove the login NAME."""

    def edit(lines: dict[str, str]) -> None:
        _require(lines, name, "remove")
        if len(lines) == 1:
            groups.confirm(f"{name} is the last login: nobody can log in then. Go on?", yes=yes)
        del lines[name]

    _change(edit, **place)
    click.echo(f"removed {name}")


def _require(lines: dict[str, str], name: str, action: str) -> None:
    if name not in lines:
        raise errors.CannotStart(
            reason=f"cannot {action} {name}: no such login; there are {', '.join(lines) or 'none'}"
        )


def _password(file: TextIO | None) -> str:
    if file is not None:
        return file.readline().rstrip("\r\n")
    return groups.ask_password("Password of the login", "name --password-file", twice=True)


def _path(config_files: tuple[str, ...], file: Path | None) -> Path:
    return file or Path(conf.load(config_files).default.http_basic_auth_user_file)


def _change(edit: Callable[[dict[str, str]], None], **place: Any) -> None:
    path = _path(**place)
    try:
        htpasswd.change(path, edit)
    except OSError as exc:
        raise errors.CannotStart(reason=f"cannot change {path}: {exc.strerror}") from exc
