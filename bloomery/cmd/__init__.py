"""The command line: the only package that builds and joins the services.

Each command is imported when it is called, so that start-up stays fast.
"""

from __future__ import annotations

import sys

# Hide eventlet: futurist and oslo libraries would use it if installed.
sys.modules["eventlet"] = None  # type: ignore[assignment]

import importlib  # noqa: E402  the line above comes first
from typing import Final, NamedTuple  # noqa: E402

import click  # noqa: E402

import bloomery  # noqa: E402
from bloomery import errors  # noqa: E402
from bloomery.cli import terminal  # noqa: E402


class Command(NamedTuple):
    target: str  # module:function
    help: str


COMMANDS: Final = {
    "init": Command(
        "bloomery.cmd.init:init", "Write a configuration, a login and the database; check them."
    ),
    "serve": Command("bloomery.cmd.serve:serve", "Run APIs, conductor and engine in one process."),
    "api": Command("bloomery.cmd.api:api", "Run both APIs in a process of their own."),
    "conductor": Command(
        "bloomery.cmd.conductor:conductor", "Run a conductor in its own process; list, drain them."
    ),
    "engine": Command("bloomery.cmd.engine:engine", "Run an engine of stacks in its own process."),
    "db": Command("bloomery.cmd.db:db", "Upgrade, check, back up or copy the database."),
    "status": Command(
        "bloomery.cmd.status:status", "Show a service on one screen; check it before an upgrade."
    ),
    "support-bundle": Command(
        "bloomery.cmd.support:support_bundle", "Pack status, settings and logs without secrets."
    ),
    "keys": Command("bloomery.cmd.keys:keys", "Make the key that seals secrets, or replace it."),
    "events": Command("bloomery.cmd.events:events", "Follow events; show or forget their sinks."),
    "audit": Command("bloomery.cmd.audit:audit", "Check or export the record of all orders."),
    "config": Command("bloomery.cmd.config:config", "Print a sample of the configuration."),
    "demo": Command("bloomery.cmd.demo:demo", "Show simulated servers being deployed."),
    "discover": Command(
        "bloomery.cli.discover:discover", "Find BMCs in networks, and write them for enrol."
    ),
    "import": Command(
        "bloomery.cli.imports.commands:imports", "Take the machines of an Ironic over."
    ),
    "export": Command(
        "bloomery.cli.exports.commands:exports", "Hand machines to an Ironic, the way back."
    ),
    "enrol": Command("bloomery.cli.enrol.commands:enrol", "Create nodes from files of machines."),
    "node": Command(
        "bloomery.cli.node_commands:node", "List, explain, deploy and switch machines of a service."
    ),
    "stack": Command(
        "bloomery.cli.stack_commands:stack", "Plan, create, change and watch stacks of a service."
    ),
    "template": Command(
        "bloomery.cmd.template:template", "Check, simulate, compare and draw templates of Heat."
    ),
    "dhcp": Command(
        "bloomery.cmd.dhcp:dhcp", "Write dnsmasq's configuration for boots from the network."
    ),
    "bmc": Command("bloomery.cmd.bmc:bmc", "Check what a BMC can do, before it is enrolled."),
    "lab": Command("bloomery.cmd.lab:lab", "Run simulated racks of servers."),
}


class Lazy(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name].target.split(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a Failure becomes one sentence, and exit code 1.

        The code is 2 where what was typed or set here is wrong, as for an unknown option.
        """
        try:
            return super().invoke(ctx)
        except errors.Failure as exc:
            click.echo(f"Error: {terminal.visible(str(exc))}", err=True)
            raise SystemExit(getattr(exc, "exit_code", 1)) from exc


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(bloomery.__version__, prog_name="bloomery")
def main() -> None:
    """Take racks of bare-metal machines from plugged in to running."""
