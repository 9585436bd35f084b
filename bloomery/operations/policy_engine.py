"""The rules in force: the defaults, overridden by policy files.

oslo.policy is loaded on demand: if callers have roles, or a policy file exists.  Files are reloaded
when they change; an invalid file keeps the former rules in force.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.api import POLICY_FILE
from bloomery.model.request import Request
from bloomery.operations import policy_files
from bloomery.operations.policy_files import Check
from bloomery.operations.policy_rules import MASKS, RULES, STEP_RULES, TYPE_RULES

if TYPE_CHECKING:
    from oslo_policy.policy import Enforcer

LOG = logging.getLogger(__name__)

Target = Mapping[str, str | None]
Facts = tuple[tuple[str, Any], ...]
DECISIONS: Final = 4096  # the number of cached decisions
_REMOTE: Final = re.compile(r"\bhttps?:")
_NAMES: Final = [rule.name for rule in RULES]


class Policies:
    """``enforced``: callers have roles, and each operation is checked.

    ``enforcer``: None without rules: the mode alone decides.
    """

    def __init__(
        self, conf: Conf, folders: Sequence[Path] = (), *, enforced: bool | None = None
    ) -> None:
        """``folders``: searched in order for relative names of files.

        ``enforced``: None: by [DEFAULT]auth_strategy.

        Raises CannotStart if a configured policy file is missing or invalid.
        """
        self.enforced = conf.default.has_roles if enforced is None else enforced
        named = conf.oslo_policy
        self._file = _placed(named.policy_file, folders)
        self._dirs = [_placed(name, folders) for name in named.policy_dirs]
        self._constants = _constants(conf)
        self._signature: tuple[Any, ...] = ()
        self._looked_for = ""
        self.enforcer: Enforcer | None = None
        self._decide: Callable[[str, Facts, Facts], bool]
        if named.policy_file != POLICY_FILE and not self._file.is_file():
            raise errors.CannotStart(
                reason=f"cannot find {self._file} ([oslo_policy]policy_file)",
            )
        if self.enforced or self._files():
            try:
                self._load(_signature(self._files()))
            except (OSError, policy_files.Unusable) as exc:
                raise errors.CannotStart(reason=str(exc)) from exc

    def allow(self, request: Request, rule: str, target: Target) -> bool:
        """Check a rule.  Without an engine it fails: only secrets are checked then."""
        if self.enforcer is None:
            return False
        self._reload_if_changed(request)
        return self._decide(rule, _caller(request), tuple(target.items()))

    def allow_type(self, request: Request, type_name: str, target: Target) -> bool:
        """May the caller use a type of resource?  Only policy files have rules for types.

        The rule of the type and of each wildcard above it (``OS::Heat::*``) must pass; a type
        without a rule is allowed.
        """
        return self._allow_where_defined(request, type_rules(type_name), target)

    def allow_step(self, request: Request, step: str, target: Target) -> bool:
        """May the caller run a step?  ``step``: interface.step; a step without a rule is allowed.

        Only policy files have rules for steps.
        """
        return self._allow_where_defined(request, [f"{STEP_RULES}{step}"], target)

    def _allow_where_defined(self, request: Request, rules: Sequence[str], target: Target) -> bool:
        if self.enforcer is None:
            return True
        self._reload_if_changed(request)
        defined = [rule for rule in rules if rule in self.enforcer.rules]
        who, what = _caller(request), tuple(target.items())
        return all(self._decide(rule, who, what) for rule in defined)

    def _files(self) -> list[Path]:
        """Return the existing policy files in their order of reading."""
        inside = (sorted(folder.glob("[!.]*")) for folder in self._dirs if folder.is_dir())
        candidates = [self._file, *(path for paths in inside for path in paths)]
        return [path for path in candidates if path.is_file()]

    def _reload_if_changed(self, request: Request) -> None:
        """Check the files for changes once per request.

        Two threads may both load: each gets the same rules.
        """
        if request.request_id == self._looked_for:
            return
        self._looked_for = request.request_id
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
        self.enforcer = enforcer = _enforcer(rules)
        decide = functools.partial(_decide, enforcer, self._constants)
        # a check may call a server over HTTP, whose answer may change
        asks_others = any(_REMOTE.search(str(check)) for check in rules.values())
        self._decide = decide if asks_others else functools.lru_cache(DECISIONS)(decide)
        self._signature = signature
        LOG.info("policy files: loaded %s", [name for name, *_ in signature] or "only defaults")
        checked = _NAMES if self.enforced else sorted(set(MASKS.values()))
        idle = changed.keys() - policy_files.effective(rules, checked)
        # warn of rules without effect, such as misspelt ones
        idle = {name for name in idle if not (self.enforced and _is_of_files(name))}
        unasked = {name for name in idle if name in _NAMES or _is_of_files(name)}
        if unknown := ", ".join(sorted(idle - unasked)):
            LOG.warning("policy files: no effect: %s; no rule has such a name", unknown)
        if unasked:
            LOG.warning(
                "policy files: no effect: %s; callers without roles may do everything, and only %s "
                "are asked",
                ", ".join(sorted(unasked)),
                " and ".join(sorted(set(MASKS.values()))),
            )


def type_rules(type_name: str) -> list[str]:
    """Return the names of the rules for a type: its own, then ever wider wildcards."""
    parts = type_name.split("::")
    wildcards = ("::".join([*parts[:count], "*"]) for count in range(len(parts) - 1, 0, -1))
    return [f"{TYPE_RULES}{name}" for name in (type_name, *wildcards)]


def _is_of_files(name: str) -> bool:
    """May only policy files define a rule of this name?"""
    return name.startswith((TYPE_RULES, STEP_RULES))


def _enforcer(rules: Mapping[str, Check]) -> Enforcer:
    """Return an oslo.policy enforcer with these rules; it reads no file."""
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
    """Return the path of a file or folder; a missing one's path in the last folder."""
    places = [folder / name for folder in folders] or [Path(name)]
    return next((place for place in places if place.exists()), places[-1])


def _signature(files: Sequence[Path]) -> tuple[Any, ...]:
    """Return a value that changes with any of the files."""
    facts = ((path, path.stat()) for path in files)
    return tuple((str(path), f.st_mtime_ns, f.st_size, f.st_ino) for path, f in facts)


def _constants(conf: Conf) -> dict[str, str]:
    """Return the constants that rules may compare with."""
    if not conf.default.rbac_service_role_elevated_access:
        return {}
    return {"config.service_project_name": conf.default.rbac_service_project_name}


def _caller(request: Request) -> Facts:
    """Return the caller's credentials for oslo.policy."""
    return (
        ("roles", request.roles),
        ("user_id", request.user),
        ("user_domain_id", request.user_domain),
        ("project_id", request.project),
        ("project_name", request.project_name),
        ("project_domain_id", request.project_domain),
        ("domain_id", request.domain),
        ("system_scope", request.system_scope),
        ("is_admin_project", request.is_admin_project),
    )


def _decide(
    enforcer: Enforcer, constants: Mapping[str, str], rule: str, caller: Facts, target: Facts
) -> bool:
    """Ask oslo.policy.  Decisions are cached while the rules stay the same.

    Unknown values are left out: a caller without a project does not match the project None.
    """
    credentials = _without_none(caller)
    credentials["roles"] = list(credentials["roles"])
    facts = credentials | dict(constants) | _without_none(target)
    return bool(enforcer.enforce(rule, facts, credentials))


def _without_none(facts: Facts) -> dict[str, Any]:
    return {name: value for name, value in facts if value is not None}
