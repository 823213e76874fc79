"""meta.properties and the clean-shutdown marker."""

from pathlib import Path

import pytest

from tailrace.log.directory.meta import FirstVoter, Meta, load_meta, store_meta, take_clean_marker, write_clean_marker
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.ids import BrokerId, Id
from tailrace.ports import system_ports
from tests.unit.log.logs import on_loop

topic_id = Id(bytes(range(16)))


@on_loop
async def test_meta_properties(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert load_meta(disk, folder) is None
    voters = (FirstVoter(BrokerId(3), topic_id), FirstVoter(BrokerId(1), topic_id, "fe80::1", 9192))
    meta = Meta(cluster_id="abc=", broker_id=BrokerId(3), directory_id=topic_id, peer_port=9193, voters=voters)
    await store_meta(disk, folder, meta)
    assert load_meta(disk, folder) == meta
    path = tmp_path / "meta.properties"
    good = path.read_text()
    assert "node.id=3\n" in good
    for wrong in (
        "",
        good.replace("version=1", "version=2"),
        good.replace("node.id=3\n", ""),
        good.replace("=3", "=x"),
        good.replace("peer.port=9193\n", ""),
        good.replace("metadata.voters=", "metadata.voters=3@me,"),
    ):
        path.write_text(wrong)
        with pytest.raises(Unreadable, match=r"meta\.properties"):
            load_meta(disk, folder)


@on_loop
async def test_the_clean_marker_is_taken_once(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert not await take_clean_marker(disk, folder)
    await write_clean_marker(disk, folder, "boot-1")
    assert (tmp_path / "clean-shutdown").read_text() == "boot-1\n"
    assert await take_clean_marker(disk, folder)
    assert not await take_clean_marker(disk, folder)
