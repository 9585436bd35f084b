"""The systems behind a BMC, read with a login: which can be enrolled, and which not, and why.

    for system in list_systems("https://10.0.0.1", login, timeout_s=5.0):
        system.path, system.why_no_node     # "/redfish/v1/Systems/System_0", None

A tray or a chassis has several hosts behind one BMC, and systems that no node is made of, such as
boards of GPUs.  A DPU becomes a child node of its host, whose cards have its serial number.
Source: DMTF DSP0266; DSP0268 ComputerSystem and NetworkAdapter; DSP2063.
"""

from __future__ import annotations

import base64
import http.client
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery import errors, fetching, parsing

Json = dict[str, Any]

_ROOT: Final = "/redfish/v1/"
_SYSTEMS: Final = f"{_ROOT}Systems"
_MOST_BYTES: Final = 1 << 20  # of a document
_MOST_DOCUMENTS: Final = 80  # of a BMC
_MOST_CHASSIS, _MOST_CARDS = 4, 32  # of a host that are read
_DPU: Final = "DPU"
_NEXT_PAGE: Final = "Members@odata.nextLink"
_MACHINES: Final = ("Physical", "PhysicallyPartitioned", "Composed", _DPU, None)  # SystemType
_BOOTS: Final = (
    "BootSourceOverrideTarget", "BootSourceOverrideTarget@Redfish.AllowableValues", "BootOrder",
    "BootNext",
)  # fmt: skip


class SystemsUnreadable(errors.Failure):
    """The BMC does not show its systems."""

    code = "client.bmc_systems"
    text = "cannot read the systems of {url}: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A login that is tried once at each BMC.

    ``trust``: whose certificates are accepted, as ``fetching.tls_context`` takes it.  False: any,
    and no TLS.
    """

    username: str
    password: str = field(repr=False)
    trust: bool | str = True


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One system; ``why_no_node`` is None for one that can be enrolled.

    ``hosted_by``: the path of a DPU's host behind the same BMC, where the BMC tells it.
    """

    path: str
    model: str = ""
    serial: str = ""
    why_no_node: str | None = None
    is_dpu: bool = False
    hosted_by: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def list_systems(url: str, login: Login, timeout_s: float) -> list[System]:
    """Return the systems of a BMC in its order.

    ``url``: its scheme, host and port; ``timeout_s``: of each document.  Raises SystemsUnreadable,
    at the first refusal of the login.
    """
    if login.trust and not url.startswith("https:"):
        raise SystemsUnreadable(
            url=url, reason="it speaks no TLS, and the password would be sent in plain: "
            "--insecure sends it",
        )  # fmt: skip
    systems: list[System] = []
    page: Any = _SYSTEMS
    for _ in range(_MOST_DOCUMENTS):
        collection = _get(url, page, login, timeout_s)
        for link in collection.get("Members") or ():
            path = link.get("@odata.id") if isinstance(link, dict) else None
            if not isinstance(path, str) or not path.startswith(f"{_SYSTEMS}/"):
                raise SystemsUnreadable(url=url, reason="its list of systems is not as Redfish's")
            if len(systems) == _MOST_DOCUMENTS:
                raise SystemsUnreadable(url=url, reason=f"it has over {_MOST_DOCUMENTS} systems")
            document = _get(url, path, login, timeout_s, may_lack=True)
            links = document.get("Links")
            host = links.get("HostingComputerSystem") if isinstance(links, dict) else None
            systems.append(System(
                path=path.rstrip("/"), model=_text(document, "Model"),
                serial=_text(document, "SerialNumber"), why_no_node=explain_no_node(document),
                is_dpu=document.get("SystemType") == _DPU,
                hosted_by=_text(host, "@odata.id").rstrip("/") if isinstance(host, dict) else None,
            ))  # fmt: skip
        page = collection.get(_NEXT_PAGE)
        if not isinstance(page, str) or not page.startswith(_SYSTEMS):
            break
    return systems


def list_card_serials(url: str, system: str, login: Login, timeout_s: float) -> set[str]:
    """Return the serial numbers of a host's cards: network adapters and PCIe devices.

    ``system``: its path.  Raises SystemsUnreadable.
    """

    def read(paths: list[str]) -> list[Json]:
        return [_get(url, path, login, timeout_s, may_lack=True) for path in paths]

    [document] = read([system])
    cards = _links(document, "PCIeDevices")[:_MOST_CARDS]
    for chassis in read(_links(document.get("Links"), "Chassis")[:_MOST_CHASSIS]):
        for adapters in read(_links({"one": [chassis.get("NetworkAdapters")]}, "one")):
            cards += _links(adapters, "Members")[:_MOST_CARDS]
    return set(filter(None, (_text(card, "SerialNumber").strip() for card in read(cards))))


def _links(document: Any, name: str) -> list[str]:
    """Return the paths in a list of links, without what is no link."""
    values = document.get(name) if isinstance(document, dict) else None
    links = values if isinstance(values, list) else []
    paths = [link.get("@odata.id") for link in links if isinstance(link, dict)]
    return [path for path in paths if isinstance(path, str) and path.startswith(_ROOT)]


def explain_no_node(document: Mapping[str, Any]) -> str | None:
    """Return why no node is made of a system, or None; {}: the BMC does not show it."""
    if not document:
        return "the BMC lists it and does not show it: it may have been pulled"
    kind, boot = document.get("SystemType"), document.get("Boot")
    names = f"{document.get('Id')} {document.get('Name')}".lower()
    if kind not in _MACHINES:
        return f"its SystemType is {errors.shortened(str(kind))}, not that of a machine"
    if "baseboard" in names:
        return "a baseboard of GPUs, which is switched with its host and boots nothing"
    if "#ComputerSystem.Reset" not in (document.get("Actions") or {}):
        return "it cannot be switched: it has no action Reset"
    if not isinstance(boot, dict) or not any(name in boot for name in _BOOTS):
        return "it has no boot device that could be set"
    return None


def _get(url: str, path: str, login: Login, timeout_s: float, *, may_lack: bool = False) -> Json:
    """Return a document; ``may_lack``: {} where it is missing."""
    parts = urllib.parse.urlsplit(url)
    context = fetching.tls_context(login.trust) if parts.scheme == "https" else None
    until_s = time.monotonic() + timeout_s
    connection = fetching.Connection(parts, fetching.resolved, until_s, context)
    pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    headers = fetching.HEADERS | {"Authorization": f"Basic {pair}"}
    try:
        connection.request("GET", urllib.parse.quote(path, safe=fetching.SAFE), headers=headers)
        with connection.getresponse() as answer:
            status = answer.status
            document = parsing.load_json(connection.content(answer, _MOST_BYTES) or b"{}")
    except (OSError, http.client.HTTPException) as exc:
        reason = connection.why(exc, f"no answer within {timeout_s:g} s")
        raise SystemsUnreadable(url=url, reason=reason) from None
    except ValueError:
        raise SystemsUnreadable(url=url, reason=f"{path} is no JSON") from None
    finally:
        connection.end()
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        reason = f"it refuses the login of {login.username} (HTTP {status})"
        raise SystemsUnreadable(url=url, reason=reason)
    if may_lack and status in (http.client.NOT_FOUND, http.client.GONE):
        return {}
    if status != http.client.OK or not isinstance(document, dict):
        raise SystemsUnreadable(url=url, reason=f"{path} is HTTP {status}")
    return document


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
