"""``bloomery support-bundle``: a tar.gz for whoever helps, without secrets.

Each part is a function that returns a text; ``Masker`` sees every text before it is written.  A
part that cannot be read leaves its error in the bundle, and stops no other part.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
import json
import os
import platform
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

import bloomery
from bloomery import conf, errors, secrets
from bloomery.cli import cloud, status_text, terminal
from bloomery.cli.service import options, upgrade_checks
from bloomery.db import rows
from bloomery.state_dir import StateDir

MOST_LOG_BYTES: Final = 10 << 20  # of the end of each log
MOST_EVENTS: Final = 1000
_LEAST_SECRET: Final = 4  # characters; shorter ones would be found in every word
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
_UNDECLARED: Final = "(not shown)"
_ENVIRONMENT: Final = ("OS_PASSWORD", "OS_TOKEN", "OS_APPLICATION_CREDENTIAL_SECRET")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the parts are read."""

    state_dir: Path
    config_files: Sequence[str]
    cloud_name: str | None
    logs: Sequence[Path]


@click.command("support-bundle")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Write this file.  [default: bloomery-support-TIME.tar.gz]")  # fmt: skip
@click.option("--log", "logs", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A log: its last 10 MiB are included; may be repeated.")  # fmt: skip
@options.state_dir
@options.config_file
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
def support_bundle(
    output: Path | None,
    logs: tuple[Path, ...],
    state_dir: Path,
    config_files: tuple[str, ...],
    name: str | None,
) -> None:
    """Write versions, configuration, status, metrics, events and logs to a tar.gz.

    Secrets are masked.  Look into it before you send it: names and addresses are in it.
    """
    sources = Sources(state_dir=state_dir, config_files=config_files, cloud_name=name, logs=logs)
    path = output or Path(f"bloomery-support-{rows.now():%Y%m%dT%H%M%SZ}.tar.gz")
    missing = write(path, sources)
    for part, reason in missing.items():
        click.echo(terminal.visible(f"{part} is missing: {reason}"), err=True)
    click.echo(f"wrote {path}; look into it before you send it")


def write(path: Path, sources: Sources) -> dict[str, str]:
    """Write the bundle; return the parts that could not be read.  Raises CannotStart."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot write {path}: {exc.strerror}; name another --output"
        ) from exc
    try:
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
            masker, missing = Masker(_secrets_of(sources)), {}
            for name, read in _parts(sources).items():
                try:
                    member, text = name, masker.masked(read())
                except (errors.Failure, OSError, ValueError) as exc:
                    member = f"{name}.error"
                    text = missing[name] = masker.masked(errors.brief(exc))
                content, info = text.encode(), tarfile.TarInfo(f"bloomery-support/{member}")
                info.size, info.mode, info.mtime = len(content), 0o600, int(time.time())
                bundle.addfile(info, io.BytesIO(content))
            return missing
    except OSError as exc:
        path.unlink(missing_ok=True)
        raise errors.CannotStart(
            reason=f"cannot write {path}: {exc.strerror}; make room, or name another --output"
        ) from exc


# -------------------------------------------------------------------------------------- secrets


class Masker:
    """Masks the site's own secrets wherever they stand, and what looks like a secret."""

    def __init__(self, own: Iterable[str]) -> None:
        # the longest first, as one may be a part of another
        self._own = sorted((each for each in set(own) if len(each) >= _LEAST_SECRET), key=len)[::-1]

    def masked(self, text: str) -> str:
        text = secrets.hide(text, self._own)
        text = _URL.sub(lambda match: secrets.mask_address(match[0]), text)
        return "\n".join(str(secrets.mask(line)) for line in text.split("\n"))


def _secrets_of(sources: Sources) -> Iterator[str]:
    """Yield the secrets that this process can read: keys, options, logins of clients."""
    home = StateDir(sources.state_dir)
    yield from (os.environ.get(name, "") for name in _ENVIRONMENT)
    declared = _declared()
    for group, members in conf.read_files(sources.config_files).items():
        for name, values in members.items():
            is_shown = declared.get((group, name.replace("-", "_"))) is False
            for value in values if not is_shown else ():
                yield value
                yield from secrets.in_address(value) if "://" in value else ()
    key_files = [home.key]
    with contextlib.suppress(errors.Failure):
        if path := conf.load(sources.config_files).default.sealing_key_file:
            key_files.append(Path(path))
    for file in key_files:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            yield from file.read_text().split()


def _declared() -> dict[tuple[str, str], bool]:
    """Return whether an option is secret, by group and name."""
    return {
        (group, str(option.dest)): bool(option.secret) or secrets.is_secret_key(str(option.dest))
        for group, members in conf.list_opts()
        for option in members
    }


# ---------------------------------------------------------------------------------------- parts


def _parts(sources: Sources) -> Mapping[str, Callable[[], str]]:
    """Return the function that reads each part."""
    site = functools.cache(lambda: cloud.find(sources.cloud_name))

    def configuration() -> str:
        """Return the options that are set, without the values of secret and unknown ones."""
        declared, lines = _declared(), []
        for group, members in conf.read_files(sources.config_files).items():
            lines.append(f"[{group}]")
            for name, values in members.items():
                is_secret = declared.get((group, name.replace("-", "_")))
                for value in values:
                    text = {None: _UNDECLARED, True: secrets.MASK, False: value}[is_secret]
                    lines.append(f"{name} = {text}")
            lines.append("")
        return "\n".join(lines) or "no configuration file was named\n"

    def checks() -> str:
        results = upgrade_checks.run(sources.state_dir, sources.config_files)
        return _json([each._asdict() for each in results])

    def status() -> str:
        document = status_text.read(site())
        return _json({**document, "problems": status_text.problems(document)})

    def nodes_with_problems() -> str:
        rows = site().nodes.pages("/ext/v1/nodes?limit=1000", "nodes")
        return _json([row for row in rows if row["cause_code"]])

    def end_of(path: Path) -> str:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - MOST_LOG_BYTES, 0))
            return file.read().decode(errors="replace")

    return {
        "versions.json": _versions,
        "configuration.ini": configuration,
        "checks.json": checks,
        "status.json": status,
        "nodes.json": nodes_with_problems,
        "events.json": lambda: _json(
            site().nodes.get(f"/ext/v1/events?order=desc&limit={MOST_EVENTS}")
        ),
        "metrics.txt": lambda: b"".join(site().nodes.stream("/metrics", {})).decode(),
        **{
            f"logs/{number}-{path.name}": functools.partial(end_of, path)
            for number, path in enumerate(sources.logs)
        },
    }


def _json(document: Any) -> str:
    """Return a document as text, with what has a secret name masked."""
    return json.dumps(secrets.mask(document), indent=1, default=str)


def _versions() -> str:
    packages = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    return _json(
        {
            "bloomery": bloomery.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "packages": dict(sorted(packages.items())),
        }
    )
