"""Authentication by tokens of an identity service (auth_strategy = keystone).

keystonemiddleware validates tokens; it reads its options from [keystone_authtoken] itself.  It sees
the tokens, the method and the path of a request, and no other header.  The caller is read from the
validated token, never from a header.  Two things are added:

* validation runs in threads of its own, so that a slow identity service delays no cached caller;
* validated tokens are cached for token_cache_time, in one bounded table.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import cachetools
import webob
from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading, session
from keystoneauth1.identity import v3
from keystonemiddleware import auth_token
from oslo_config import cfg

from bloomery import errors
from bloomery.api import auth
from bloomery.conf import KEYSTONE_GROUP
from bloomery.http_server import login
from bloomery.model.request import Request

LOG = logging.getLogger(__name__)

MAX_REMEMBERED: Final = 10_000
MAX_CHECKS: Final = 64  # that may wait
MAX_LOGINS: Final = 4  # at a time; each holds a thread of the API
_LOGIN_S: Final = 10
BESIDE_MEMCACHED_S: Final = 5  # local caching on top of memcached
# X-Storage-Token is absent: the package would take it for the same header.
_OF_USER: Final = "HTTP_X_AUTH_TOKEN"
_OF_SERVICE: Final = "HTTP_X_SERVICE_TOKEN"
_PLACE: Final = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "AUTH_TYPE")
_NO_CACHE: Final = "bloomery.no_token_cache"
_CREDENTIALS: Final = "keystone.token_auth"
_INFO: Final = "keystone.token_info"
_PASSED: Final = 204  # the status of the application behind the package
_UNAVAILABLE: Final = 503
_INCOMPLETE: Final = (
    f"cannot check tokens: [{KEYSTONE_GROUP}]auth_type is not set; set auth_type = password, "
    "auth_url, username, password, user_domain_id, project_name and project_domain_id there, of a "
    "user that may validate tokens, or choose another [DEFAULT]auth_strategy"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a token; ``facts`` are fields of a Request.

    ``expires_at`` is None where a service token lets an expired token pass.
    """

    facts: Mapping[str, Any]
    expires_at: datetime | None


class _NoCache:
    """Replace the package's in-memory cache, which has no bound."""

    def get(self, key: str) -> None:
        return None

    def set(self, key: str, value: bytes, time: int = 0) -> None: ...


class Keystone:
    """Token validation in front of one API, in ``checkers`` threads."""

    def __init__(
        self,
        config_files: Sequence[str],
        *,
        service_type: str,
        checkers: int = 4,
    ) -> None:
        """``service_type``: the API's entry in the catalog, for tokens with access rules.

        Raises CannotStart for options that cannot be used.
        """
        source = cfg.ConfigOpts()
        source(args=[], project="bloomery", default_config_files=list(config_files))
        self.now: Callable[[], datetime] = functools.partial(datetime.now, UTC)
        self._protocol = _protocol(source, service_type)
        if not source[KEYSTONE_GROUP].auth_section:
            _warn_of_unknown(source, config_files)
        self._options = source[KEYSTONE_GROUP]
        keep_s = max(0, self._options.token_cache_time)
        if self._options.memcached_servers:
            keep_s = min(keep_s, BESIDE_MEMCACHED_S)
        self._key = os.urandom(32)
        self._mutex = threading.Lock()
        self._callers: cachetools.TTLCache[bytes, Caller] = cachetools.TTLCache(
            MAX_REMEMBERED, keep_s
        )
        self._checks: dict[bytes, login.Check] = {}
        self._logins = threading.BoundedSemaphore(MAX_LOGINS)
        self._pool = ThreadPoolExecutor(max_workers=checkers, thread_name_prefix="token")

    @property
    def identity_url(self) -> str:
        """Return the URL where clients get tokens."""
        return str(self._protocol.www_authenticate_uri)

    def issue_token(
        self,
        *,
        user: str,
        password: str,
        domain: str = "Default",
        project: str | None = None,
        project_domain: str = "Default",
        system: bool = False,
    ) -> dict[str, Any]:
        """Return a token and when it expires.

        Raises auth.Unauthorized, auth.Busy, auth.IdentityUnavailable.
        """
        plugin = v3.Password(
            self.identity_url, username=user, password=password, user_domain_name=domain,
            project_name=project, project_domain_name=project_domain if project else None,
            system_scope="all" if system else None,
        )  # fmt: skip
        verify = False if self._options.insecure else self._options.cafile or True
        if not self._logins.acquire(blocking=False):
            raise auth.Busy
        try:
            access = plugin.get_access(session.Session(verify=verify, timeout=_LOGIN_S))
        except (ksa.Unauthorized, ksa.Forbidden, ksa.NotFound) as exc:
            raise auth.Unauthorized from exc
        except (ksa.ClientException, LookupError, TypeError, ValueError) as exc:
            LOG.error("cannot get a token: %s", type(exc).__name__)  # noqa: TRY400  no fault of ours
            raise auth.IdentityUnavailable from exc
        finally:
            self._logins.release()
        return {"token": access.auth_token, "expires_at": access.expires}

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        """Return the request with the caller of its token; equal requests share one validation."""
        claim = {name: environ[name] for name in _PLACE if name in environ}
        tokens = {n: environ[n].strip() for n in (_OF_USER, _OF_SERVICE) if n in environ}
        if all(token.isascii() and token.isprintable() for token in tokens.values()):
            claim |= tokens
        claim |= {
            "SERVER_NAME": "localhost", "SERVER_PORT": "0", "wsgi.url_scheme": "http",
            _NO_CACHE: _NoCache(),
        }  # fmt: skip
        if not claim.get(_OF_USER):
            raise auth.Refused(self._ask(claim))  # no token: the answer needs no identity service
        caller = self._find(claim)
        if caller is not None:
            return replace(request, **caller.facts)
        proof = self._proof(claim, *_PLACE)
        check: login.Check | None = environ.get(login.DEFERRED)
        if check is None or check.subject != proof:
            with self._mutex:
                check = self._checks.get(proof)
                if check is None:
                    if len(self._checks) >= MAX_CHECKS:
                        raise auth.Busy
                    outcome = self._pool.submit(self._verify, claim)
                    check = self._checks[proof] = login.Check(subject=proof, outcome=outcome)
                    outcome.add_done_callback(lambda _: self._checks.pop(proof, None))
        if login.DEFERRED in environ and not check.outcome.done():
            raise login.Deferred(check)
        return replace(request, **check.outcome.result().facts)

    def _verify(self, claim: Mapping[str, Any]) -> Caller:
        """Return the caller of the tokens.  Raises Refused, IdentityUnavailable.

        The caller is read from the token itself: the package also writes headers, where a service
        token's scope replaces the user's.
        """
        caller = self._find(claim)  # another request may have cached it meanwhile
        if caller is not None:
            return caller
        environ = dict(claim)
        refusal = self._ask(environ)
        if refusal is not None:
            raise auth.Refused(refusal)
        credentials, token = environ[_CREDENTIALS], environ[_INFO]["token"]
        user = credentials.user
        has_access_rules = token.get("application_credential", {}).get("access_rules") is not None
        caller = Caller(
            facts={
                "user": user.user_id,
                "user_name": user.username,
                "user_domain": user.user_domain_id,
                "project": user.project_id,
                "project_name": user.project_name,
                "project_domain": user.project_domain_id,
                "domain": user.domain_id,
                "roles": tuple(user.role_names),
                # Keystone's default
                "is_admin_project": token.get("is_admin_project", True) is True,
                "is_restricted": bool(user.bind or has_access_rules),
                "system_scope": "all" if user.system_scoped and user.system.get("all") else None,
            },
            expires_at=None if credentials.has_service_token else user.expires,
        )
        proof = self._proof(claim, *(_PLACE if caller.facts["is_restricted"] else ()))
        with self._mutex:
            self._callers[proof] = caller
        return caller

    def _ask(self, environ: dict[str, Any]) -> webob.Response | None:
        """Return the package's refusal; None if the request passes."""
        try:
            response = webob.Request(environ).get_response(self._protocol)
        except (ksa.ClientException, LookupError, TypeError, ValueError) as exc:
            reason = f"{type(exc).__name__}: {exc}"
            LOG.error("cannot check a token: %s", reason)  # noqa: TRY400  no fault of ours
            raise auth.IdentityUnavailable from exc
        if response.status_int == _UNAVAILABLE:
            raise auth.IdentityUnavailable
        return None if response.status_int == _PASSED else response

    def _find(self, claim: Mapping[str, Any]) -> Caller | None:
        """Return the cached caller of these tokens; access rules bind some to method and path."""
        proofs = self._proof(claim), self._proof(claim, *_PLACE)
        with self._mutex:
            caller = self._callers.get(proofs[0]) or self._callers.get(proofs[1])
        if caller is None or caller.expires_at is None:
            return caller
        return caller if caller.expires_at > self.now() else None

    def _proof(self, claim: Mapping[str, Any], *place: str) -> bytes:
        """Return the cache key of tokens, a digest: the cache holds no token."""
        names = (_OF_USER, _OF_SERVICE, *place)
        text = "\0".join(str(claim.get(name, "")) for name in names)
        return hmac.digest(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)


def _pass(_environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
    start_response(f"{_PASSED} No Content", [])
    return []


def _protocol(source: cfg.ConfigOpts, service_type: str) -> Any:
    """Return the package's WSGI application.  Raises CannotStart."""
    choices = {
        "oslo_config_config": source,
        "delay_auth_decision": False,  # requests without a token are refused at once
        "service_type": service_type,
    }
    try:
        for group, options in auth_token.list_opts():
            source.register_opts(options, group=group)
        group = source[KEYSTONE_GROUP]
        if not group.auth_type and not group.auth_section:
            raise errors.CannotStart(reason=_INCOMPLETE)
        module, package = "memcache", "python-memcached"
        if group.memcache_sasl_enabled or group.memcache_tls_enabled:
            module, package = "bmemcached", "python-binary-memcached"
        if not group.memcached_servers:
            choices["cache"] = _NO_CACHE
        elif importlib.util.find_spec(module) is None:  # each request would fail
            raise errors.CannotStart(
                reason=f"cannot use [{KEYSTONE_GROUP}]memcached_servers: install {package}, or "
                "take the option out",
            )
        return auth_token.AuthProtocol(_pass, choices)
    except (
        cfg.Error,
        ksa.ClientException,
        auth_token.ConfigurationError,
        OSError,
        ValueError,
    ) as exc:
        reason = f"cannot use the options in [{KEYSTONE_GROUP}]: {' '.join(str(exc).split())}"
        raise errors.CannotStart(reason=reason) from exc


def _warn_of_unknown(source: cfg.ConfigOpts, config_files: Sequence[str]) -> None:
    """Warn of options without effect, such as misspelt ones."""
    sections: dict[str, dict[str, list[str]]] = {}
    for name in config_files:
        cfg.ConfigParser(name, sections).parse()
    names = [name.replace("-", "_") for name in sections.get(KEYSTONE_GROUP, ())]
    ((_, options),) = auth_token.list_opts()
    options += loading.get_auth_plugin_conf_options(source[KEYSTONE_GROUP].auth_type)
    former = {
        old.name.replace("-", "_")
        for option in options
        for old in option.deprecated_opts
        if old.name
    }
    if idle := sorted(n for n in names if n not in source[KEYSTONE_GROUP] and n not in former):
        LOG.warning("no effect: %s", ", ".join(f"[{KEYSTONE_GROUP}]{name}" for name in idle))
