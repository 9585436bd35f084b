"""The command line.  Each command is imported when it is called, so that start-up stays fast."""

from __future__ import annotations

import gc
import importlib
from typing import Final, NamedTuple

import click

import bloomery
import bloomery.cmd  # hides eventlet, before a command imports futurist
from bloomery import errors
from bloomery.cli import terminal


class Command(NamedTuple):
    target: str  # module:function, below this package
    help: str


COMMANDS: Final = {
    "init": Command(
        "service.init:init",
        "Write a configuration, a login and the database; check them.",
    ),
    "serve": Command("service.roles:serve", "Run APIs, conductor and engine in one process."),
    "api": Command("service.api_and_engine:api", "Run both APIs in a process of their own."),
    "conductor": Command(
        "service.roles:conductor",
        "Run a conductor in its own process; list, drain them.",
    ),
    "engine": Command(
        "service.api_and_engine:engine", "Run an engine of stacks in its own process."
    ),
    "db": Command("service.db:db", "Upgrade, check, back up or copy the database."),
    "status": Command(
        "service.status:status",
        "Show a service on one screen; check it before an upgrade.",
    ),
    "support-bundle": Command(
        "service.support:support_bundle",
        "Pack status, settings and logs without secrets.",
    ),
    "user": Command("service.user:user", "Add, list and remove logins of http_basic."),
    "keys": Command("service.keys:keys", "Make the key that seals secrets, or replace it."),
    "events": Command("service.events:events", "Follow events; show or forget their sinks."),
    "audit": Command("service.audit:audit", "Check or export the record of all orders."),
    "config": Command("service.config:config", "Print a sample of the configuration."),
    "demo": Command("service.demo:demo", "Show simulated servers being deployed."),
    "discover": Command("discover:discover", "Find BMCs in networks, and write them for enrol."),
    "import": Command("imports.commands:imports", "Take the machines of an Ironic over."),
    "export": Command("handover:exports", "Hand machines to an Ironic, the way back."),
    "enrol": Command("enrol.commands:enrol", "Create nodes from files of machines."),
    "node": Command(
        "node_commands:node", "List, explain, deploy and switch machines of a service."
    ),
    "stack": Command("stack_commands:stack", "Plan, create, change and watch stacks of a service."),
    "template": Command(
        "service.template:template",
        "Check, simulate, compare and draw templates of Heat.",
    ),
    "dhcp": Command(
        "service.dhcp:dhcp",
        "Write dnsmasq's configuration for boots from the network.",
    ),
    "firmware": Command(
        "firmware:firmware", "List the firmware of the fleet; update it by a catalogue."
    ),
    "activity": Command(
        "activity:activity", "Show what happened, what failed, and which steps are slow."
    ),
    "bmc": Command("service.bmc:bmc", "Check what a BMC can do; change passwords of BMCs."),
    "lab": Command("service.lab:lab", "Run simulated racks of servers."),
}


class Lazy(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name].target.split(":")
        gc.disable()  # looking for circles among 100,000 new objects takes 7 % of a start
        try:
            command: click.Command = getattr(
                importlib.import_module(f"bloomery.cli.{module}"), function
            )
        finally:
            gc.enable()
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
