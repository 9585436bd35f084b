"""Plug-in modules of a site, which provide resource types and constraints without installation.

Each file of ``[engine]plugin_dirs`` that ends in .py, and each folder that is a package, is
imported once, when the process begins.  As in Heat, its functions return what it provides::

    def resource_mapping():  # or available_resource_mapping, which may look first
        return {"My::Kettle": Kettle}


    def constraint_mapping():
        return {"my.tea": is_tea}

Their types and constraints are added to those of entry points, and replace those of equal names.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.properties import custom
from bloomery.orchestration.resources import base
from bloomery.orchestration.template import kinds

RESOURCES: Final = ("available_resource_mapping", "resource_mapping")  # the first that a module has
CONSTRAINTS: Final = ("constraint_mapping",)


def install(folders: Sequence[str]) -> None:
    """Import the modules of ``folders`` and register their resource types and constraints."""
    for path in paths(folders):
        module = _imported(path)
        for name, kind in _mapped(module, RESOURCES, path).items():
            if not (isinstance(kind, type) and issubclass(kind, base.Resource)):
                raise _refused(path, f"maps {name} to {kind!r}, which is no kind of resource")
            kinds.offer(name, kind)
        for name, check in _mapped(module, CONSTRAINTS, path).items():
            if not callable(check):
                raise _refused(path, f"maps {name} to {check!r}, which cannot be called")
            custom.offer(name, check)


def paths(folders: Sequence[str]) -> Iterator[Path]:
    for folder in folders:
        try:
            entries = sorted(Path(folder).iterdir())
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot read [engine]plugin_dirs {folder}: {exc.strerror or exc}"
            ) from exc
        for entry in entries:
            if entry.suffix == ".py":
                yield entry
            elif (entry / "__init__.py").is_file():
                yield entry / "__init__.py"


def _imported(path: Path) -> ModuleType:
    place = path.parent if path.name == "__init__.py" else path
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"bloomery_plugin_{place.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    packages = [str(place)] if place.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=packages)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as exc:  # the code of a site may raise anything
        del sys.modules[name]
        raise _refused(path, f"cannot be imported: {type(exc).__name__}: {exc}") from exc
    return module


def _mapped(module: ModuleType, functions: Sequence[str], path: Path) -> Mapping[str, Any]:
    mapping: Callable[[], Any] | None = next(
        (getattr(module, name) for name in functions if hasattr(module, name)), None
    )
    if mapping is None:
        return {}
    try:
        mapped = mapping()
    except Exception as exc:  # see _imported
        raise _refused(path, f"{mapping.__name__}() fails: {type(exc).__name__}: {exc}") from exc
    if not isinstance(mapped, Mapping):
        raise _refused(path, f"{mapping.__name__}() must return a map by name")
    return mapped


def _refused(path: Path, why: str) -> errors.CannotStart:
    return errors.CannotStart(
        reason=f"cannot use the plug-in {path}: it {why}; mend it or take it out of its folder"
    )
