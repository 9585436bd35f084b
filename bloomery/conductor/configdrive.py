"""Config drives: a small image beside an instance's disk that cloud-init reads.

    configdrive.check_size(node, document)  # in the request
    configdrive.image_of(node, {"meta_data": {"hostname": "web-1"}, "user_data": "#cloud-config"})
    # in a worker: "H4sIAAAA...", the base64 text of a gzipped ISO 9660 image labelled config-2

Hold ``ONE_AT_A_TIME`` to seal, open or build a drive: that takes up to 9 times its size in memory.
Network data are not checked.  Both versions of the format share their files by hard links.

Source: OpenStack's metadata format 2012-08-10; ECMA-119 with Joliet and Rock Ridge.
"""

from __future__ import annotations

import base64
import gzip
import io
import threading
from typing import Any, Final

import orjson

from bloomery import errors
from bloomery.model.node import Node

Json = dict[str, Any]

ONE_AT_A_TIME: Final = threading.Lock()
MOST_MIB: Final = 64  # of the image: agents create no larger partition
_LABEL: Final = "config-2"
_VERSIONS: Final = ("2012-08-10", "latest")
_FILES: Final = {
    "meta_data": "meta_data.json",
    "network_data": "network_data.json",
    "user_data": "user_data",
    "vendor_data": "vendor_data2.json",
}


def check_size(node: Node, drive: Json | str | None) -> None:
    """Raise InvalidParameterValue for a drive that is too large; builds nothing."""
    if isinstance(drive, str):
        size = 0 if "://" in drive else len(drive) * 3 // 4
    else:
        size = sum(map(len, _contents(node, drive).values())) if drive else 0
    if size > MOST_MIB << 20:
        raise errors.InvalidParameterValue(
            reason=f"configdrive takes at most {MOST_MIB} MiB, and this one has "
            f"{size / (1 << 20):.1f}; name a URL, or let the instance fetch what is large",
        )


def image_of(node: Node, document: Json) -> str:
    """Return a config drive as the base64 text of its gzipped image."""
    import pycdlib  # most conductors build no image

    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, joliet=3, rock_ridge="1.09", vol_ident=_LABEL)
    for folder in ("openstack", *(f"openstack/{version}" for version in _VERSIONS)):
        path, name = f"/{folder}", folder.rpartition("/")[2]
        iso.add_directory(_iso_path(path), rr_name=name, joliet_path=path)
    for name, content in _contents(node, document).items():
        path, *others = (f"/openstack/{version}/{name}" for version in _VERSIONS)
        iso.add_fp(
            io.BytesIO(content), len(content), iso_path=f"{_iso_path(path)};1", rr_name=name,
            joliet_path=path,
        )  # fmt: skip
        for other in others:
            old = f"{_iso_path(path)};1"
            iso.add_hard_link(iso_old_path=old, iso_new_path=f"{_iso_path(other)};1", rr_name=name)
            iso.add_hard_link(iso_old_path=old, joliet_new_path=other)
    image = io.BytesIO()
    iso.write_fp(image)
    iso.close()
    return base64.b64encode(gzip.compress(image.getvalue(), mtime=0)).decode()


def _contents(node: Node, document: Json) -> dict[str, bytes]:
    """Return the files by name, without empty ones.

    The meta data always have the node's UUID and name.
    """
    meta_data = {"uuid": node.uuid, "name": node.name} | document.get("meta_data", {})
    parts = document | {"meta_data": meta_data}
    contents = {}
    for part, name in _FILES.items():
        if content := parts.get(part):
            is_text = isinstance(content, str)
            contents[name] = (
                content.encode("utf-8", "replace") if is_text else orjson.dumps(content)
            )
    return contents


def _iso_path(path: str) -> str:
    """Return a path within ISO 9660's character set.

    Clients read the Rock Ridge or Joliet names.
    """
    folder, _, name = path.upper().rpartition("/")
    return f"{folder.replace('-', '_')}/{name if '.' in name else name.replace('-', '_')}"
