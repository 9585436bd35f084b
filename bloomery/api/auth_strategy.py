"""Build the authentication that [DEFAULT]auth_strategy names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bloomery.api import auth
from bloomery.conf import Conf
from bloomery.http_server import login


def logins(conf: Conf, config_files: Sequence[str] = ()) -> auth.Auth:
    """Return the authentication that [DEFAULT]auth_strategy names.

    ``config_files``: where keystonemiddleware finds its own options.  Raises CannotStart.
    """
    strategy = conf.default.auth_strategy
    if strategy == "http_basic":
        checkers = max(1, conf.api.threads // 2)
        return login.HttpBasic(Path(conf.default.http_basic_auth_user_file), checkers)
    if conf.default.has_roles:
        return _keystone(config_files, "baremetal")
    return auth.NoAuth()


def for_stacks(conf: Conf, logins: auth.Auth, config_files: Sequence[str] = ()) -> auth.Auth:
    """Return the authentication of the orchestration API.

    A token may be valid for one API only; a password is valid for both and checked once.
    """
    if conf.default.has_roles:
        return _keystone(config_files, "orchestration")
    return logins


def _keystone(config_files: Sequence[str], service_type: str) -> auth.Auth:
    # the import takes a third of a second, and other strategies do without
    from bloomery.api import keystone

    return keystone.Keystone(config_files, service_type=service_type)


def identity_url(logins: auth.Auth) -> str | None:
    """Return the URL where clients get tokens; None where they need none."""
    return getattr(logins, "identity_url", None)


def names(logins: auth.Auth) -> list[str] | None:
    """Return the names that may log in, in the order of the file; None without HTTP basic."""
    return list(logins.names) if isinstance(logins, login.HttpBasic) else None


def first_name(conf: Conf) -> str | None:
    """Return the first user of the htpasswd file, for clouds.yaml; None without HTTP basic."""
    if conf.default.auth_strategy != "http_basic":
        return None
    return next(iter(login.HttpBasic(Path(conf.default.http_basic_auth_user_file)).names), None)
