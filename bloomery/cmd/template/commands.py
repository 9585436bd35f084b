"""The commands.  A fault is one line, ``file:line: what and the way out``, and exit code 1."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from bloomery import errors
from bloomery.cmd.template import hints, loading, locating, pictures, tables
from bloomery.cmd.template.clock import Monotonic
from bloomery.cmd.template.loading import Loaded, Source
from bloomery.cmd.template.writing import Writing
from bloomery.orchestration import plan as plans
from bloomery.orchestration import scheduler, simulation
from bloomery.orchestration.drawing import dot, svg
from bloomery.orchestration.plan import printing
from bloomery.orchestration.resources import states
from bloomery.orchestration.simulation import results
from bloomery.orchestration.stack import Stack

INTERRUPTED: Final = 130  # as shells have it: 128 and the number of the signal
FILE = click.argument("file")
NAME = click.option("--name", default=None, help="Of the stack; made from the file's if not given.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead.")


def given(prefix: str = "", of: str = "") -> Callable[[Any], Any]:
    """The options -e and -P, or their long forms for one of two stacks."""
    long, short = (f"--{prefix}-", []) if prefix else ("--", ["-e"])
    also = ["-P"] if short else []
    key = f"{prefix}_" if prefix else ""

    def with_options(command: Any) -> Any:
        environment = click.option(
            *short,
            f"{long}environment",
            f"{key}environments",
            multiple=True,
            metavar="FILE",
            help=f"An environment{of}; may be repeated, the last one wins.",
        )
        parameter = click.option(
            *also,
            f"{long}parameter",
            f"{key}parameters",
            multiple=True,
            metavar="KEY=VALUE",
            help=f"A parameter{of}; may be repeated.",
        )
        return environment(parameter(command))

    return with_options


@click.group(cls=Writing)
def template() -> None:
    """Check, show, simulate, compare and draw templates of Heat; no service is needed.

    FILE is a path, a URL, or - for standard input.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show stops no command
            stream.reconfigure(errors="backslashreplace")


@template.command(short_help="Say whether a stack could be created.")
@FILE
@given()
def validate(file: str, environments: tuple[str, ...], parameters: tuple[str, ...]) -> None:
    """Say whether a stack could be created from FILE, and if not, where to change what."""
    stack = _checked(_loaded(file, environments, parameters))
    click.echo(f"{file}: {tables.counted(stack)}; it can be created")


@template.command(short_help="Show parameters, and resources in order.")
@FILE
@given()
@NAME
@AS_JSON
def show(
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    name: str | None,
    as_json: bool,
) -> None:
    """Show the parameters of FILE, and its resources in the order of creation, values resolved."""
    loaded = _loaded(file, environments, parameters, name)
    shown = tables.document(_checked(loaded, as_json=as_json))
    click.echo(_json(shown) if as_json else tables.text(shown))


@template.command(short_help="Create the stack in memory.")
@FILE
@given()
@NAME
@AS_JSON
@click.option("--rollback", is_flag=True, help="Take away what was made if something fails.")
@click.option("--real-time", is_flag=True, help="Wait as long as the resources want to.")
def run(
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    name: str | None,
    as_json: bool,
    rollback: bool,
    real_time: bool,
) -> None:
    """Create the stack of FILE in memory: print events, states and outputs.

    Time is simulated unless --real-time is given: an hour of waiting takes no time.
    """
    loaded = _loaded(file, environments, parameters, name)
    clock = Monotonic() if real_time else scheduler.Simulated()
    on_event = tables.quiet if as_json else tables.Events(click.echo, clock.now())
    shared = simulation.Simulation(clock=clock, on_event=on_event)
    try:
        result = _simulated(loaded, shared, rollback=rollback, as_json=as_json)
    except KeyboardInterrupt:
        result = None  # what is under way is cancelled, and told, once this exception is gone
    if result is None:
        result = tables.interrupted(shared.events)
    click.echo(_json(result.document()) if as_json else tables.outcome(result))
    if result.error is not None:
        raise SystemExit(INTERRUPTED if result.error.type == tables.INTERRUPTED else 1)


def _simulated(
    loaded: Loaded, shared: simulation.Simulation, *, rollback: bool, as_json: bool
) -> simulation.Result:
    try:
        return simulation.run(_validated(loaded), rollback=rollback, simulation=shared)
    except errors.Failure as exc:
        _tell(exc, loaded)
        if not as_json:
            raise SystemExit(1) from exc
        return simulation.Result(status=None, error=results.error_of(exc))


@template.command(short_help="Say what an update would do.")
@click.argument("old")
@click.argument("new")
@given(of=" of both")
@given("old", " of OLD alone")
@given("new", " of NEW alone")
@AS_JSON
@click.option("--all", "everything", is_flag=True, help="List what stays as it is, too.")
def plan(
    old: str,
    new: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    old_environments: tuple[str, ...],
    old_parameters: tuple[str, ...],
    new_environments: tuple[str, ...],
    new_parameters: tuple[str, ...],
    as_json: bool,
    everything: bool,
) -> None:
    """Say what an update of a stack of template OLD to template NEW would do."""
    name = Source(file=new).stack_name
    from_ = _loaded(old, environments + old_environments, parameters + old_parameters, name)
    to = _loaded(new, environments + new_environments, parameters + new_parameters, name)
    before, after = _checked(from_, as_json=as_json), _checked(to, as_json=as_json)
    with faults_told(to, as_json=as_json):
        after.definition.parameters.check_immutable(before.definition.parameters)
        made = plans.plan(before, after)
    said = _json(printing.document(made)) if as_json else printing.text(made, unchanged=everything)
    click.echo(said.rstrip("\n"))


@template.command(short_help="Draw who requires whom.")
@FILE
@given()
@click.option("--svg", "svg_file", metavar="FILE", help="Write the picture here; -: print it.")
@click.option("--dot", "dot_file", metavar="FILE", help="Write DOT here; -: print it, as without.")
def graph(
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    svg_file: str | None,
    dot_file: str | None,
) -> None:
    """Draw who requires whom in FILE, stacks below it as clusters: as SVG, or as DOT."""
    drawn = pictures.picture(_checked(_loaded(file, environments, parameters)))
    if svg_file:
        _write(svg_file, svg.drawn(drawn))
    if dot_file or not svg_file:
        _write(dot_file or "-", dot.written(drawn))


def _loaded(
    file: str, environments: tuple[str, ...], parameters: tuple[str, ...], name: str | None = None
) -> Loaded:
    return loading.load(
        Source(file=file, environments=environments, parameters=parameters, name=name)
    )


def _validated(loaded: Loaded) -> Stack:
    stack = loaded.stack()
    for place, says in _hinted(loaded, stack):
        click.echo(tables.visible(f"{place}: hint: {says}"), err=True)
    stack.validate()
    return stack


def _hinted(loaded: Loaded, stack: Stack) -> Iterator[tuple[object, str]]:
    for file, text in loaded.texts.items():
        for line, says in sorted(hints.doubles(text)):
            yield locating.Place(file, line), says
    for key, reason in loaded.basket.unread.items():
        yield loaded.source.file, f"cannot read {key}: {reason}"
    for hint in hints.of(stack.definition.template):
        yield locating.place(loaded.source.file, hint.path, loaded.texts), hint.says


def _checked(loaded: Loaded, *, as_json: bool = False) -> Stack:
    """The stack, if it could be created; else the fault is told and the command ends."""
    with faults_told(loaded, as_json=as_json):
        return _validated(loaded)


@contextlib.contextmanager
def faults_told(loaded: Loaded, *, as_json: bool) -> Iterator[None]:
    """End the command at a fault: a line for people, and a document if one was asked for."""
    try:
        yield
    except errors.Failure as exc:
        _tell(exc, loaded)
        if as_json:
            click.echo(_json({"error": results.error_of(exc).shown()}))
        raise SystemExit(1) from exc


def _tell(exc: errors.Failure, loaded: Loaded) -> None:
    place = locating.located(exc, loaded.file_at_fault(exc), loaded.texts)
    kind = states.error_type(exc)
    click.echo(tables.visible(f"{place}: {kind}: {exc}{hints.way_out(exc)}"), err=True)


def _write(file: str, text: str) -> None:
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise click.ClickException(f"cannot write {file}: {exc.strerror}") from exc
    click.echo(f"wrote {file}")


def _json(document: Any) -> str:
    """One document; plain ASCII where what reads it may not be told UTF-8."""
    utf_8 = str(sys.stdout.encoding).lower().replace("-", "") == "utf8"
    return json.dumps(document, indent=2, ensure_ascii=not utf_8, default=str)
