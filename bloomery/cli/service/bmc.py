"""``bloomery bmc``: what a BMC can do, before a node is enrolled with it; ``cli/passwords``."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from bloomery import conf, errors, secrets
from bloomery.cli import bmc_text, groups, passwords
from bloomery.cli.service import options
from bloomery.conf import Conf
from bloomery.model.node import Node

if TYPE_CHECKING:
    from bloomery.cli.service.boot_media import Trial
    from bloomery.drivers.base import DriverTask

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_WORKED: Final = ("fetched", "not fetched")
_BUDGET_S: Final = 30.0  # of one call to the BMC


@click.group(cls=groups.Group)
def bmc() -> None:
    """Check BMCs, create their users, and change their passwords."""


bmc.add_command(passwords.password)


def _read_driver_info(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return keys and values.  Raises UsageError for a secret one."""
    info = dict(each.partition("=")[::2] for each in pairs)
    if secret := next((key for key in info if secrets.is_secret_key(key)), None):
        raise click.UsageError(
            f"cannot take {secret} as an argument, which other users can read: use --password-file"
        )
    return info


@bmc.command()
@click.argument("address")
@click.option("--username", help="User of the BMC.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File with the password; else the variable {groups.BMC_PASSWORD}, else a prompt.",
)
@click.option(
    "--protocol",
    "protocols",
    type=click.Choice(["redfish", "ipmi"]),
    multiple=True,
    help="Ask by this protocol; may be repeated.  [default: redfish for a URL, else both]",
)
@click.option(
    "--driver-info",
    "more",
    multiple=True,
    metavar="KEY=VALUE",
    help="As of a node, such as redfish_verify_ca=false or ipmi_port=6230; may be repeated.",
)
@click.option(
    "--boot-media",
    is_flag=True,
    help="Insert a tiny CD, show how the BMC fetches it, and eject it; only by Redfish.",
)
@click.option(
    "--listen",
    metavar="HOST[:PORT]",
    help="Serve the CD of --boot-media here.  [default: the address on the way to the BMC]",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long until the BMC fetches the CD of --boot-media.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.config_file
def check(
    address: str,
    username: str | None,
    password_file: Path | None,
    protocols: tuple[str, ...],
    more: tuple[str, ...],
    boot_media: bool,
    listen: str | None,
    wait_s: float,
    as_json: bool,
    config_files: tuple[str, ...],
) -> None:
    """Show what the BMC at ADDRESS (a host or URL) can do, and the driver_info to write.

    Nothing is changed, except by --boot-media: it inserts a CD and ejects it.  The exit code is 1
    where machines behind it cannot be deployed, or --boot-media fails.
    """
    settings, extra = conf.load(config_files), _read_driver_info(more)
    password = os.environ.get(groups.BMC_PASSWORD)
    if username is not None or password_file is not None:
        password = groups.read_bmc_password(password_file)
    names = protocols or (("redfish",) if "://" in address else ("redfish", "ipmi"))
    if boot_media and "redfish" not in names:
        raise click.UsageError("cannot check boot media by IPMI: use --protocol redfish")
    trial = None
    if boot_media:
        from bloomery.cli.service.boot_media import Trial  # it needs the API's files

        trial = Trial(listen=listen, wait_s=wait_s)
    host = urllib.parse.urlsplit(address).hostname if "://" in address else address
    reports = []
    for name in names:
        info = {
            f"{name}_address": address if name == "redfish" else host,
            f"{name}_username": username,
            f"{name}_password": password,
        }
        info = {key: value for key, value in info.items() if value is not None}
        reports.append(_EXAMINE[name](settings, info | extra, trial))
    click.echo(bmc_text.as_json(reports) if as_json else bmc_text.render(reports))
    media = [report["boot_media"] for report in reports if report.get("boot_media") is not None]
    has_worked = all(each["result"] in _WORKED and each["left"] is None for each in media)
    if not has_worked or not any(report["usable"] for report in reports):
        raise click.exceptions.Exit(1)


@bmc.group(cls=groups.Group)
def user() -> None:
    """Create users at BMCs."""


@user.command()
@click.argument("address")
@click.argument("name")
@click.option("--username", required=True, help="User of the BMC who may create others.")
@click.option(
    "--password-file", type=_FILE,
    help=f"File with that user's password; else the variable {groups.BMC_PASSWORD}, else a prompt.",
)  # fmt: skip
@click.option(
    "--new-password-file", type=_FILE, help="File with the password of NAME; else a prompt."
)
@click.option(
    "--role", default="Administrator", show_default=True, help="Of NAME, as the BMC calls it."
)
@click.option(
    "--driver-info", "more", multiple=True, metavar="KEY=VALUE",
    help="As of a node, such as redfish_verify_ca=false; may be repeated.",
)  # fmt: skip
@groups.AS_JSON
@options.config_file
def create(
    address: str,
    name: str,
    username: str,
    password_file: Path | None,
    new_password_file: Path | None,
    role: str,
    more: tuple[str, ...],
    as_json: bool,
    config_files: tuple[str, ...],
) -> None:
    """Create the user NAME at the BMC at ADDRESS by Redfish, and log in as NAME.

    The exit code is 0 only if that login works.
    """
    settings, extra = conf.load(config_files), _read_driver_info(more)
    password = groups.read_bmc_password(password_file)
    if new_password_file is not None:
        new_password = new_password_file.read_text(encoding="utf-8").rstrip("\r\n")
    else:
        new_password = groups.ask_password(
            f"Password of {name}", "name --new-password-file", twice=True
        )
    info = {
        "redfish_address": address, "redfish_username": username, "redfish_password": password,
    }  # fmt: skip
    from bloomery.drivers.redfish import users
    from bloomery.drivers.redfish.power import RedfishPower

    power = RedfishPower(settings)
    try:
        task = _task("redfish", info | extra, may_write=True)
        account = users.create(power.access, task, name, new_password, role)
    except errors.Failure as no:
        raise click.ClickException(str(no)) from no
    finally:
        power.close()
    if as_json:
        click.echo(json.dumps({"address": address, "username": name} | account, indent=2))
        return
    click.echo(f"user {name} was created with role {role}, and has logged in; for a node, write:\n")
    click.echo(f"  redfish_address  {address}\n  redfish_username  {name}")


def _redfish(settings: Conf, info: Mapping[str, Any], trial: Trial | None) -> dict[str, Any]:
    from bloomery.drivers.redfish.power import RedfishPower

    power = RedfishPower(settings)
    try:
        report = power.examine_bmc(_task("redfish", info))
        if trial is not None:
            task = _task("redfish", info, may_write=True)
            report["boot_media"] = trial.run(power.access, task, settings)
    finally:
        power.close()
    return report


def _ipmi(settings: Conf, info: Mapping[str, Any], _trial: Trial | None) -> dict[str, Any]:
    from bloomery.drivers.ipmi.power import IpmitoolPower

    power = IpmitoolPower(settings)
    try:
        return power.examine_bmc(_task("ipmi", info))
    finally:
        power.close()


_EXAMINE: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    "redfish": _redfish, "ipmi": _ipmi,
}  # fmt: skip


def _task(driver: str, info: Mapping[str, Any], *, may_write: bool = False) -> DriverTask:
    node = Node(uuid="to check", driver=driver)
    return cast("DriverTask", _Task(node=node, driver_info=info, may_write=may_write))


@dataclass(slots=True, kw_only=True)
class _Task:
    """The part of a ``DriverTask`` that a check needs: no node is enrolled."""

    node: Node
    driver_info: Mapping[str, Any]
    may_write: bool
    turn: int = 0
    reads: dict[str, Any] | None = field(default=None)
    insists: bool = True
    budget_s: float | None = _BUDGET_S

    def assert_lease(self) -> None:
        if not self.may_write:
            raise errors.ExclusiveLockRequired
