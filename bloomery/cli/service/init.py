"""``bloomery init``: write a configuration, the file of logins, the state dir and the database.

The configuration has comments; ``bloomery config sample`` prints the options that it leaves out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

import click

from bloomery import conf, errors, htpasswd
from bloomery.cli import groups
from bloomery.cli.service import options
from bloomery.db import schema
from bloomery.state_dir import StateDir

TRIAL, HOST, HOSTS = "trial", "host", "hosts"
_KINDS: Final = {
    TRIAL: "a trial on loopback, without logins",
    HOST: "one host: all roles in one process, SQLite",
    HOSTS: "many hosts: roles apart, a database server and RabbitMQ",
}
_HARDWARE: Final = ("fake-hardware", "redfish")

Lines = dict[str, tuple[str, str]]  # by option: its comment and value


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers from flags, or from questions at the terminal."""

    kind: str
    folder: Path
    state_dir: Path
    address: str
    user: str
    password: str = field(default="", repr=False)
    hardware: Sequence[str] = _HARDWARE
    database: str | None = field(default=None, repr=False)
    transport: str | None = field(default=None, repr=False)

    @property
    def config(self) -> Path:
        return self.folder / "bloomery.conf"

    @property
    def logins(self) -> Path:
        return self.folder / "htpasswd"


@click.command()
@click.option("--kind", type=click.Choice(list(_KINDS)), help="Without it, questions are asked.")
@click.option("--config-dir", "folder", type=click.Path(path_type=Path), default=Path(),
              metavar="DIR", help="For bloomery.conf and htpasswd.  [default: .]")  # fmt: skip
@options.state_dir
@click.option("--host", "address", metavar="ADDRESS", help="Listen here.  [default: 127.0.0.1]")
@click.option("--user", default="admin", show_default=True, help="Name of the first login.")
@click.option("--password-file", type=click.File(encoding="utf-8"), metavar="FILE",
              help="Password of the login, in the first line; -: standard input.")  # fmt: skip
@click.option("--hardware", multiple=True, metavar="TYPE", help="Hardware type; may be repeated.")
@click.option("--database", metavar="URL", envvar="BLOOMERY_DATABASE",
              help="Of many hosts: postgresql+psycopg://USER:PASSWORD@HOST/NAME")  # fmt: skip
@click.option("--transport-url", "transport", metavar="URL", envvar="BLOOMERY_TRANSPORT_URL",
              help="Of many hosts: rabbit://USER:PASSWORD@HOST:5672/")  # fmt: skip
def init(
    kind: str | None,
    folder: Path,
    state_dir: Path,
    address: str | None,
    user: str,
    password_file: TextIO | None,
    hardware: tuple[str, ...],
    database: str | None,
    transport: str | None,
) -> None:
    """Write a configuration with comments, a login and the database, and check them.

    Existing files are never overwritten. URLs with passwords are better in BLOOMERY_DATABASE and
    BLOOMERY_TRANSPORT_URL: every user of the machine can read arguments.
    """
    if kind is None:
        if not sys.stdin.isatty():
            raise click.UsageError(f"cannot ask: name --kind, one of {', '.join(_KINDS)}")
        for name, meaning in _KINDS.items():
            click.echo(f"{name:6} {meaning}")
        choice = click.Choice(list(_KINDS))
        kind = str(click.prompt("What is it for?", type=choice, default=TRIAL))
    password = ""
    if kind != TRIAL and password_file is not None:
        password = password_file.readline().rstrip("\n")
    elif kind != TRIAL:
        password = groups.ask_password("Password of the login", "name --password-file", twice=True)
    answers = Answers(
        kind=kind,
        folder=folder.expanduser().absolute(),
        state_dir=state_dir.expanduser().absolute(),
        address=address or "127.0.0.1",
        user=user,
        password=password,
        hardware=hardware or _HARDWARE,
        database=_server(kind, "--database", database),
        transport=_server(kind, "--transport-url", transport),
    )
    if kind == TRIAL and address not in (None, "127.0.0.1", "::1"):
        raise click.UsageError("--host: a trial has no logins, and listens on loopback only")
    revision = prepare(answers)
    click.echo(f"wrote {answers.config}")
    click.echo(f"the schema is {revision}, in {answers.state_dir}")
    role = "serve" if kind != HOSTS else "api"
    click.echo(
        f"start it: bloomery {role} --config-file {answers.config} --state-dir {answers.state_dir}"
    )


def prepare(answers: Answers) -> str | None:
    """Write the files, create the database; return its revision.  A failure removes the files."""
    files = {answers.config: configuration(answers)}
    if answers.kind != TRIAL:
        login = f"{htpasswd.entry(answers.user, answers.password)}\n"
        files = {answers.logins: login} | files
    with contextlib.ExitStack() as undo:
        for path, text in files.items():
            _write(path, text)
            undo.callback(path.unlink, missing_ok=True)
        # state dir, key and schema, checked as ``bloomery db check`` does
        config_files = (str(answers.config),)
        settings, home = conf.load(config_files), StateDir(answers.state_dir)
        with home:
            database = home.open_database(settings.database)
            if database.is_sqlite:
                schema.prepare(database)
            else:
                schema.upgrade(database)
            home.recognise(database)
            home.sealer(database)
            schema.require_head(database, state_dir=home.path, config_files=config_files)
            revision = schema.revision_of(database)
            database.close()
        undo.pop_all()
    return revision


def _server(kind: str, option: str, url: str | None) -> str | None:
    """Return the URL of a server, which many hosts need, and no other kind takes."""
    if kind == HOSTS and not url:
        if not sys.stdin.isatty():
            raise click.UsageError(f"many hosts need {option} URL")
        return str(click.prompt(option, hide_input=True))
    if kind != HOSTS and url:
        raise click.UsageError(f"{option} is for --kind {HOSTS}")
    return url


def _write(path: Path, text: str) -> None:
    """Write a new file for its owner alone.  Raises CannotStart, also for an existing file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except FileExistsError as exc:
        reason = f"cannot write {path}: it is there; move it away, or name another --config-dir"
        raise errors.CannotStart(reason=reason) from exc
    except OSError as exc:
        raise errors.CannotStart(reason=f"cannot write {path}: {exc.strerror}") from exc


def configuration(answers: Answers) -> str:
    """Return the text of bloomery.conf, each option under a comment."""
    default: Lines = {"auth_strategy": ("noauth: no logins, on loopback only", "noauth")}
    api = {"host_ip": ("both APIs listen here; 0.0.0.0: on every address", answers.address)}
    if answers.kind != TRIAL:
        default = {
            "auth_strategy": (
                "logins of a file; or keystone: bloomery config sample prints its options",
                "http_basic",
            ),
            "http_basic_auth_user_file": (
                "a line for each login; bloomery user add NAME writes one",
                str(answers.logins),
            ),
        }
        api["enable_ssl_api"] = ("true serves TLS, with cert_file and key_file", "false")
    default["enabled_hardware_types"] = (
        "hardware types: fake-hardware, redfish, idrac, ipmi, manual-management, webhook",
        ",".join(answers.hardware),
    )
    if answers.transport:
        default["rpc_transport"] = ("calls between hosts go through RabbitMQ", "oslo")
        default["transport_url"] = ("the message broker that all hosts share", answers.transport)
    sections = {"DEFAULT": default, "api": api}
    if answers.database:
        url = "the database that all hosts share"
        sections["database"] = {"connection": (url, answers.database)}
    parts = ["# Written by bloomery init. `bloomery config sample` prints every option."]
    for name, lines in sections.items():
        parts.append(f"\n[{name}]")
        for option, (comment, value) in lines.items():
            parts += [f"# {comment}", f"{option} = {value.replace('$', '$$')}"]
    return "\n".join(parts) + "\n"
