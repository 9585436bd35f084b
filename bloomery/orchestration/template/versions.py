"""Classes of templates, found through entry points by the version key of a document.

Each entry point of the group ``bloomery.templates`` is called ``<version key>.<version>`` and loads
a class of templates (see dialect.py); a release name is one more entry point for the same class::

    heat_template_version.2018-08-31 = bloomery.orchestration.template.hot:Hot20180831
    heat_template_version.rocky = bloomery.orchestration.template.hot:Hot20180831
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import stevedore

from bloomery import errors
from bloomery.orchestration.template.dialect import Template

GROUP: Final = "bloomery.templates"
ADVICE: Final = "write heat_template_version: 2021-04-16"

Classes: TypeAlias = Mapping[str, type[Template]]  # by name of entry point


@functools.cache
def installed() -> Classes:
    """Return the installed classes, those of plug-ins included; looked up once."""
    manager: Any = stevedore.ExtensionManager(GROUP, invoke_on_load=False)
    return {extension.name: extension.plugin for extension in manager}


def template_class(document: Mapping[str, Any], classes: Classes | None = None) -> type[Template]:
    """Return the class for ``document``.  Raises InvalidTemplateVersion."""
    classes = installed() if classes is None else classes
    version_keys = {name.partition(".")[0] for name in classes}
    named = [key for key in document if key in version_keys and isinstance(document[key], str)]
    if not named:
        raise _fault(f"Template version was not provided: {ADVICE}")
    if len(named) > 1:
        raise _fault(f"Ambiguous versions ({', '.join(named)}): keep one of them")
    (key,) = named
    cls = classes.get(f"{key}.{document[key]}")
    if cls is None:
        value = document[key]
        values = sorted(name.partition(".")[2] for name in classes if name.startswith(f"{key}."))
        one_of = "should be one of" if len(values) > 1 else "should be"
        listed = f"{', '.join(values)}.{errors.nearest(value, values)}"
        raise _fault(f'"{key}: {value[:100]}". "{key}" {one_of}: {listed}')
    return cls


def _fault(reason: str) -> errors.InvalidTemplateVersion:
    return errors.InvalidTemplateVersion(reason=f"The template version is invalid: {reason}")


def has_version(document: Mapping[str, Any], classes: Classes | None = None) -> bool:
    """Return whether a document has any version key.

    Heat's API answers HTTPBadRequest for a template that came as text and has none.
    """
    version_keys = {
        name.partition(".")[0] for name in (installed() if classes is None else classes)
    }
    return not version_keys.isdisjoint(document)


# ------------------------------------------------------------------------------- lists for the API


def listed(classes: Classes | None = None) -> list[dict[str, Any]]:
    """Return the answer to ``GET template_versions``: each class once, by its version."""
    classes = installed() if classes is None else classes
    aliases: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    for name, cls in sorted(classes.items()):
        proper = f"{cls.features.version_key}.{cls.features.version}"
        types[proper] = cls.features.type
        aliases.setdefault(proper, []).extend([name] if name != proper else [])
    return [
        {"version": proper, "type": types[proper], "aliases": names}
        for proper, names in sorted(aliases.items())
    ]


def functions(
    version: str, *, conditions: bool = False, classes: Classes | None = None
) -> list[dict[str, str]]:
    """Return the answer to ``template_versions/{version}/functions``.  Raises NotFound.

    ``conditions``: include functions that only conditions may use.
    """
    classes = installed() if classes is None else classes
    if version not in classes:
        near = errors.nearest(version, classes)
        raise errors.NotFound(reason=f"Template version {version} was not found.{near}")
    lines = classes[version].features.offered.lines(with_conditions=conditions)
    return [{"functions": name, "description": line} for name, line in lines.items()]
