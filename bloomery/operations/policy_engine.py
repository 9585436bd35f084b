"""The rules in force: the table of defaults, and what policy files change of it.

oslo.policy is loaded where it is needed only: where callers have roles, or a policy file is there.
A file is read again when it changes; one that is of no use leaves the last rules in force.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.api import POLICY_FILE
from bloomery.model.request import Request
from bloomery.operations import policy_files
from bloomery.operations.policy_files import Check
from bloomery.operations.policy_rules import MASKS, RULES, TYPE_RULES

if TYPE_CHECKING:
    from oslo_policy.policy import Enforcer

LOG = logging.getLogger(__name__)

Target = Mapping[str, str | None]
_NAMES: Final = [rule.name for rule in RULES]


class Policies:
    """``enforced``: callers have roles, and each operation must be allowed to them."""

    def __init__(self, conf: Conf, folders: Sequence[Path] = (), *, enforced: bool = False) -> None:
        """``folders``: where files that are named without a place are looked for, in order.

        Raises CannotStart if a policy file is named and missing, or can't be used.
        """
        self.enforced = enforced
        named = conf.oslo_policy
        self._file = _placed(named.policy_file, folders)
        self._dirs = [_placed(name, folders) for name in named.policy_dirs]
        self._constants = _constants(conf)
        self._signature: tuple[Any, ...] = ()
        self._enforcer: Enforcer | None = None
        if named.policy_file != POLICY_FILE and not self._file.is_file():
            raise errors.CannotStart(
                reason=f"cannot find {self._file} ([oslo_policy]policy_file)",
            )
        if enforced or self._files():
            self._load_at_start()

    @property
    def consults_rules(self) -> bool:
        """Are there rules at all?  Where there are none, nothing is allowed but by the mode."""
        return self._enforcer is not None

    def allow(self, request: Request, rule: str, target: Target) -> bool:
        """Ask the engine.  Where none is loaded, nobody is allowed: it is the masks that ask."""
        if self._enforcer is None:
            return False
        self._reload_if_changed()
        return self._allows(self._enforcer, request, rule, target)

    def allow_type(self, request: Request, type_name: str, target: Target) -> bool:
        """May the caller use a type of resource?  Rules for types are those of policy files.

        One for the type and one for each wildcard above it (``OS::Heat::*``) must all agree; a type
        without any is allowed.
        """
        if self._enforcer is None:
            return True
        self._reload_if_changed()
        rules = [rule for rule in type_rules(type_name) if rule in self._enforcer.rules]
        return all(self._allows(self._enforcer, request, rule, target) for rule in rules)

    def _allows(self, enforcer: Enforcer, request: Request, rule: str, target: Target) -> bool:
        credentials = _credentials(request)
        facts = credentials | self._constants | _without_none(target)
        return bool(enforcer.enforce(rule, facts, credentials))

    def _files(self) -> list[Path]:
        """Return the policy files that there are, in the order in which they are read."""
        inside = (sorted(folder.glob("[!.]*")) for folder in self._dirs if folder.is_dir())
        candidates = [self._file, *(path for paths in inside for path in paths)]
        return [path for path in candidates if path.is_file()]

    def _load_at_start(self) -> None:
        try:
            self._load(_signature(self._files()))
        except (OSError, policy_files.Unusable) as exc:
            raise errors.CannotStart(reason=str(exc)) from exc

    def _reload_if_changed(self) -> None:
        """Two threads may both load: each gets the same rules."""
        try:
            signature = _signature(self._files())
            if signature != self._signature:
                self._signature = signature
                self._load(signature)
        except (OSError, policy_files.Unusable) as exc:
            LOG.warning("policy files: the last rules stay in force: %s", exc)

    def _load(self, signature: tuple[Any, ...]) -> None:
        changed = policy_files.read([Path(name) for name, *_ in signature])
        rules: dict[str, Check] = {rule.name: rule.check for rule in RULES}
        rules.update(changed)
        self._enforcer = _enforcer(rules)
        self._signature = signature
        LOG.info("policy files: loaded %s", [name for name, *_ in signature] or "only defaults")
        asked = _NAMES if self.enforced else sorted(set(MASKS.values()))
        idle = changed.keys() - policy_files.effective(rules, asked)
        _warn_of(sorted(name for name in idle if not (self.enforced and _is_of_type(name))))


def type_rules(type_name: str) -> list[str]:
    """Return the names of the rules for a type: its own, then ever wider wildcards."""
    parts = type_name.split("::")
    wildcards = ("::".join([*parts[:count], "*"]) for count in range(len(parts) - 1, 0, -1))
    return [f"{TYPE_RULES}{name}" for name in (type_name, *wildcards)]


def _is_of_type(name: str) -> bool:
    return name.startswith(TYPE_RULES)


def _warn_of(names: Sequence[str]) -> None:
    """Say which rules of the files have no effect: a misspelt one might matter."""
    unasked = [name for name in names if name in _NAMES or _is_of_type(name)]
    if unknown := [name for name in names if name not in unasked]:
        LOG.warning("policy files: no effect: %s; no rule has such a name", ", ".join(unknown))
    if unasked:
        LOG.warning(
            "policy files: no effect: %s; callers without roles may do everything, and only %s "
            "are asked",
            ", ".join(unasked),
            " and ".join(sorted(set(MASKS.values()))),
        )


def _enforcer(rules: Mapping[str, Check]) -> Enforcer:
    """Return an engine with these rules; it looks at no file."""
    from oslo_config import cfg
    from oslo_policy import policy

    source = cfg.ConfigOpts()
    source(args=[], default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(source, use_conf=False)
    enforcer.register_defaults(
        [
            policy.RuleDefault(
                rule.name, rule.check, rule.description, scope_types=list(rule.scopes) or None
            )
            for rule in RULES
        ]
    )
    enforcer.set_rules(policy.Rules.from_dict(dict[str, Any](rules)), use_conf=False)
    enforcer.check_rules()
    return enforcer


def _placed(name: str, folders: Sequence[Path]) -> Path:
    """Return where a file or folder is, or would be looked for last."""
    places = [folder / name for folder in folders] or [Path(name)]
    return next((place for place in places if place.exists()), places[-1])


def _signature(files: Sequence[Path]) -> tuple[Any, ...]:
    """Return what changes when one of the files does, or when one comes or goes."""
    facts = ((path, path.stat()) for path in files)
    return tuple((str(path), f.st_mtime_ns, f.st_size, f.st_ino) for path, f in facts)


def _constants(conf: Conf) -> dict[str, str]:
    """Return what rules may compare with besides the caller and the node."""
    if not conf.default.rbac_service_role_elevated_access:
        return {}
    return {"config.service_project_name": conf.default.rbac_service_project_name}


def _credentials(request: Request) -> dict[str, Any]:
    """Return the caller as oslo.policy's checks know one.

    What is not known is left out: a caller without a project is not of the project None.
    """
    return {
        "roles": list(request.roles),
        **_without_none(
            {
                "user_id": request.user,
                "project_id": request.project,
                "project_name": request.project_name,
                "system_scope": request.system_scope,
            }
        ),
    }


def _without_none(facts: Target) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value is not None}
