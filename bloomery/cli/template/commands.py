"""The commands.  A fault is one line, ``file:line: fault and advice``, and exit code 1.

A file that cannot be read has no place: the sentence names it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from bloomery import errors
from bloomery.cli import groups, plan_text, terminal
from bloomery.cli.template import hints, places, tables
from bloomery.cli.template.loader import Source, StackLoader
from bloomery.orchestration import foresight
from bloomery.orchestration.drawing import dot, svg
from bloomery.orchestration.foresight import document as plan_document
from bloomery.orchestration.resources import states
from bloomery.orchestration.simulation import results
from bloomery.orchestration.stack import Stack, ValidationLevel, list_faults
from bloomery.orchestration.stack import validate as validate_stack

FILE = click.argument("file", type=groups.DOCUMENT)
NAME = click.option("--name", default=None, help="Of the stack; made from the file's if not given.")


class Writing(groups.Group):
    """Commands that report in one sentence that their output cannot be written."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a full disk or a closed pipe is no bug."""
        try:
            return super().invoke(ctx)
        except OSError as exc:
            if exc.errno == errno.EPIPE:
                raise  # click handles it
            # drop unwritten output, which Python would flush again at exit
            with contextlib.suppress(OSError):  # standard output may be no file
                null_device = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null_device, sys.stdout.fileno())
                os.close(null_device)
            raise click.ClickException(f"cannot print the rest: {exc.strerror or exc}") from exc


def stack_options(prefix: str = "", of: str = "") -> Callable[[Any], Any]:
    """Return the options -e and -P, or their long forms for one of two stacks."""
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
        # characters that a terminal cannot show stop no command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@template.command(short_help="Say whether a stack could be created.")
@FILE
@stack_options()
@click.option("--shape", is_flag=True, help="Look at no values; parameters need none.")
def validate(
    file: str, environments: tuple[str, ...], parameters: tuple[str, ...], shape: bool
) -> None:
    """Check whether a stack could be created from FILE, and where to change what if not.

    With --shape only the template is checked, as POST validate of Heat does: its sections, types,
    names of properties, functions and references.
    """
    level = ValidationLevel.SHAPE if shape else ValidationLevel.VALUES
    loader = _loader(file, environments, parameters)
    with reporting_faults(loader, as_json=False):
        stack = _hinted_stack(loader)
    if faults := list_faults(stack, level):
        for fault in faults:
            report(fault, loader)
        raise SystemExit(1)
    _write_unread(loader)
    verdict = "its shape is sound; values were not looked at" if shape else "it can be created"
    click.echo(f"{file}: {tables.summary(stack)}; {verdict}")


@template.command(short_help="Show parameters, and resources in order.")
@FILE
@stack_options()
@NAME
@groups.AS_JSON
def show(
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    name: str | None,
    as_json: bool,
) -> None:
    """Show the parameters of FILE, and its resources in the order of creation, values resolved."""
    loader = _loader(file, environments, parameters, name)
    document = tables.document(_checked(loader, as_json=as_json))
    click.echo(json_text(document) if as_json else tables.text(document))


@template.command(short_help="Say what an update would do.")
@click.argument("old", type=groups.DOCUMENT)
@click.argument("new", type=groups.DOCUMENT)
@stack_options(of=" of both")
@stack_options("old", " of OLD alone")
@stack_options("new", " of NEW alone")
@groups.AS_JSON
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
    """Show what an update of a stack of template OLD to template NEW would do."""
    name = Source(file=new).stack_name
    from_ = _loader(old, environments + old_environments, parameters + old_parameters, name)
    to = _loader(new, environments + new_environments, parameters + new_parameters, name)
    before, after = _checked(from_, as_json=as_json), _checked(to, as_json=as_json)
    with reporting_faults(to, as_json=as_json):
        after.definition.parameters.check_immutable(before.definition.parameters)
        update_plan = foresight.plan(before, after)
    document = plan_document.of_templates(update_plan)
    click.echo(json_text(document) if as_json else plan_text.text(document, unchanged=everything))


@template.command(short_help="Draw who requires whom.")
@FILE
@stack_options()
@click.option("--svg", "svg_file", metavar="FILE", help="Write the picture here; -: print it.")
@click.option("--dot", "dot_file", metavar="FILE", help="Write DOT here; -: print it, as without.")
def graph(
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    svg_file: str | None,
    dot_file: str | None,
) -> None:
    """Draw the dependencies in FILE, nested stacks as clusters: as SVG, or as DOT."""
    drawing = tables.picture(_checked(_loader(file, environments, parameters)))
    if svg_file:
        _write(svg_file, svg.drawn(drawing))
    if dot_file or not svg_file:
        _write(dot_file or "-", dot.written(drawing))


def _loader(
    file: str, environments: tuple[str, ...], parameters: tuple[str, ...], name: str | None = None
) -> StackLoader:
    source = Source(file=file, environments=environments, parameters=parameters, name=name)
    return StackLoader(source=source)


def validated(loader: StackLoader, level: ValidationLevel = ValidationLevel.VALUES) -> Stack:
    stack = _hinted_stack(loader)
    validate_stack(stack, level)
    _write_unread(loader)
    return stack


def _hinted_stack(loader: StackLoader) -> Stack:
    """Return the stack, and write the hints on its templates."""
    stack = loader.stack()
    for file, text in loader.texts.items():
        for line, sentence in sorted(hints.doubles(text)):
            _write_hint(places.Place(file, line), sentence)
    for hint in hints.of(stack.definition.template):
        _write_hint(places.place(loader.source.file, hint.path, loader.texts), hint.sentence)
    return stack


def _write_unread(loader: StackLoader) -> None:
    """Name the files that could not be read, where no fault has named them."""
    for key, reason in loader.bundle.unread.items():
        _write_hint(loader.source.file, f"cannot read {key}: {reason}")


def _write_hint(place: object, sentence: str) -> None:
    click.echo(terminal.visible(f"{place}: hint: {sentence}"), err=True)


def _checked(
    loader: StackLoader,
    *,
    as_json: bool = False,
    level: ValidationLevel = ValidationLevel.VALUES,
) -> Stack:
    """Return the stack if it could be created; else report the fault and end the command."""
    with reporting_faults(loader, as_json=as_json):
        return validated(loader, level)


@contextlib.contextmanager
def reporting_faults(loader: StackLoader, *, as_json: bool) -> Iterator[None]:
    """End the command at a fault: a line for people, and a document with --json."""
    try:
        yield
    except errors.Failure as exc:
        report(exc, loader)
        if as_json:
            click.echo(json_text({"error": results.error_of(exc).document()}))
        raise SystemExit(1) from exc


def report(exc: errors.Failure, loader: StackLoader) -> None:
    """Write a line for the fault, or one for each missing parameter."""
    if isinstance(exc, errors.UserParameterMissing):
        for name in loader.missing() or [exc.facts["key"]]:
            _write_fault(errors.UserParameterMissing(key=name), loader)
    else:
        _write_fault(exc, loader)


def _write_fault(exc: errors.Failure, loader: StackLoader) -> None:
    place = places.located(exc, loader.file_at_fault(exc), loader.texts)
    kind = states.error_type(exc)
    label = "" if kind == errors.TemplateUnreadable.wire_type else f"{kind}: "
    where = "" if str(exc).startswith(f"cannot read {place}: ") else f"{place}: "
    advice = hints.way_out(exc)
    unread = loader.bundle.unread.items()
    reasons = [why for key, why in unread if f'"{key}"' in str(exc) or repr(key) in str(exc)]
    if not advice and reasons:
        advice = f" Cannot read it: {reasons[0]}"
    click.echo(terminal.visible(f"{where}{label}{exc}{advice}"), err=True)


def _write(file: str, text: str) -> None:
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise click.ClickException(f"cannot write {file}: {exc.strerror}") from exc
    click.echo(f"wrote {file}")


def json_text(document: Any) -> str:
    """Return the JSON document; plain ASCII where the output's encoding is not UTF-8."""
    utf_8 = str(sys.stdout.encoding).lower().replace("-", "") == "utf8"
    return json.dumps(document, indent=2, ensure_ascii=not utf_8, default=str)
