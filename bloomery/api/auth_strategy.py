"""Who tells callers apart: what [DEFAULT]auth_strategy asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bloomery.api import auth
from bloomery.conf import Conf
from bloomery.http_server import login


def logins(conf: Conf, config_files: Sequence[str] = ()) -> auth.Auth:
    """Return what [DEFAULT]auth_strategy asks for.

    ``config_files``: where keystonemiddleware finds options of its own.  Raises CannotStart.
    """
    strategy = conf.default.auth_strategy
    if strategy == "http_basic":
        checkers = max(1, conf.api.threads // 2)
        return login.HttpBasic(Path(conf.default.http_basic_auth_user_file), checkers)
    if conf.default.has_roles:
        return _keystone(config_files, "baremetal")
    return auth.NoAuth()


def for_stacks(conf: Conf, logins: auth.Auth, config_files: Sequence[str] = ()) -> auth.Auth:
    """Return who tells callers of the orchestration API apart.

    A token may be good for one API only; a password is good for both, and checked once.
    """
    if conf.default.has_roles:
        return _keystone(config_files, "orchestration")
    return logins


def _keystone(config_files: Sequence[str], service_type: str) -> auth.Auth:
    from bloomery.api import keystone  # costs a third of a second, and others need it not

    return keystone.Keystone(config_files, service_type=service_type)


def identity_url(logins: auth.Auth) -> str | None:
    """Return where clients get tokens; None: they need none."""
    return getattr(logins, "identity_url", None)


def first_name(conf: Conf) -> str | None:
    """Return the first name that may log in, for a client to begin with; None: nobody must."""
    if conf.default.auth_strategy != "http_basic":
        return None
    return next(iter(login.HttpBasic(Path(conf.default.http_basic_auth_user_file)).names), None)
