"""The rules in force: the table of defaults, and what policy files change of it.

oslo.policy is loaded where it is needed only: where callers have roles, or a policy file is there.
A file is read again when it changes; one that is of no use leaves the last rules in force.
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
DECISIONS: Final = 4096  # that are remembered, the latest
_REMOTE: Final = re.compile(r"\bhttps?:")
_NAMES: Final = [rule.name for rule in RULES]


class Policies:
    """``enforced``: callers have roles, and each operation must be allowed to them.

    ``enforcer``: None where there are no rules: nothing is allowed then but by the mode.
    """

    def __init__(
        self, conf: Conf, folders: Sequence[Path] = (), *, enforced: bool | None = None
    ) -> None:
        """``folders``: where files that are named without a place are looked for, in order.

        ``enforced``: None: as [DEFAULT]auth_strategy has it.

        Raises CannotStart if a policy file is named and missing, or can't be used.
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
            self._load_at_start()

    def allow(self, request: Request, rule: str, target: Target) -> bool:
        """Ask the engine.  Where none is loaded, nobody is allowed: it is the masks that ask."""
        if self.enforcer is None:
            return False
        self._reload_if_changed(request)
        return self._decide(rule, _caller(request), tuple(target.items()))

    def allow_type(self, request: Request, type_name: str, target: Target) -> bool:
        """May the caller use a type of resource?  Rules for types are those of policy files.

        One for the type and one for each wildcard above it (``OS::Heat::*``) must all agree; a type
        without any is allowed.
        """
        return self._allow_where_defined(request, type_rules(type_name), target)

    def allow_step(self, request: Request, step: str, target: Target) -> bool:
        """May the caller have a step run?  ``step``: interface.step; one without a rule is allowed.

        Rules for steps are those of policy files, too.
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
        """Return the policy files that there are, in the order in which they are read."""
        inside = (sorted(folder.glob("[!.]*")) for folder in self._dirs if folder.is_dir())
        candidates = [self._file, *(path for paths in inside for path in paths)]
        return [path for path in candidates if path.is_file()]

    def _load_at_start(self) -> None:
        try:
            self._load(_signature(self._files()))
        except (OSError, policy_files.Unusable) as exc:
            raise errors.CannotStart(reason=str(exc)) from exc

    def _reload_if_changed(self, request: Request) -> None:
        """Look at the files once for a request.

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
        self._decide = decide if _asks_others(rules) else functools.lru_cache(DECISIONS)(decide)
        self._signature = signature
        LOG.info("policy files: loaded %s", [name for name, *_ in signature] or "only defaults")
        asked = _NAMES if self.enforced else sorted(set(MASKS.values()))
        idle = changed.keys() - policy_files.effective(rules, asked)
        _warn_of(sorted(name for name in idle if not (self.enforced and _is_of_files(name))))


def type_rules(type_name: str) -> list[str]:
    """Return the names of the rules for a type: its own, then ever wider wildcards."""
    parts = type_name.split("::")
    wildcards = ("::".join([*parts[:count], "*"]) for count in range(len(parts) - 1, 0, -1))
    return [f"{TYPE_RULES}{name}" for name in (type_name, *wildcards)]


def _is_of_files(name: str) -> bool:
    """Tell whether only policy files define rules of such a name."""
    return name.startswith((TYPE_RULES, STEP_RULES))


def _warn_of(names: Sequence[str]) -> None:
    """Say which rules of the files have no effect: a misspelt one might matter."""
    unasked = [name for name in names if name in _NAMES or _is_of_files(name)]
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


def _caller(request: Request) -> Facts:
    """Return the caller as oslo.policy's checks know one."""
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
    """Ask oslo.policy.  The same question has the same answer, as long as the rules are the same.

    What is not known is left out: a caller without a project is not of the project None.
    """
    credentials = _without_none(caller)
    credentials["roles"] = list(credentials["roles"])
    facts = credentials | dict(constants) | _without_none(target)
    return bool(enforcer.enforce(rule, facts, credentials))


def _without_none(facts: Facts) -> dict[str, Any]:
    return {name: value for name, value in facts if value is not None}


def _asks_others(rules: Mapping[str, Check]) -> bool:
    """Does a check ask a server over HTTP, which may answer otherwise the next time?"""
    return any(_REMOTE.search(str(check)) for check in rules.values())
