"""Files that machines fetch, written by many at a time."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from bloomery.boot_files import IPXE_ENTRY as ENTRY
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.drivers.agent_boot.publication import Publication


def test_two_nodes_may_write_the_entry_at_once(tmp_path: Path) -> None:
    publication = Publication(Conf(deploy=Deploy(http_root=str(tmp_path))))

    def write(out: BinaryIO) -> None:
        publication.write_entry(ENTRY, "entry")
        out.write(b"entry")

    publication._replace(Path(ENTRY), write)
    assert [path.name for path in tmp_path.iterdir()] == [ENTRY]
    assert (tmp_path / ENTRY).read_text() == "entry"
