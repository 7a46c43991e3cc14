"""Content in a folder: durable under its digest, and never served when it is not what it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from agentplat.content.folder import FolderContent
from agentplat.content.opening import open_content
from agentplat.domain.artifacts import Blob
from agentplat.domain.errors import ContentDamaged, ContentUnavailable, InvalidInput

from tests.agentplat.run_records import folder_content, written


def _file(folder: Path, blob: Blob) -> Path:
    return folder / "content" / blob.digest[:2] / blob.digest[2:]


@pytest.mark.parametrize("data", [b"", b"x", "טוקן".encode(), bytes(100_000)])
def test_bytes_come_back_as_they_went_in(tmp_path: Path, data: bytes) -> None:
    content = folder_content(tmp_path)
    blob = content.put(data)
    assert (content.put(data), content.get(blob), blob.size) == (blob, data, len(data))
    assert [file.read_bytes() for file in (tmp_path / "content").rglob("*") if file.is_file()] == [data]


def _flipped(file: Path) -> None:
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])


def _linked(file: Path) -> None:
    away = file.with_name("elsewhere")
    file.rename(away)
    file.symlink_to(away)


@pytest.mark.parametrize(
    "damage",
    [_flipped, _linked, Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-1])],
    ids=["flipped bit", "link", "missing", "cut off"],
)
def test_what_is_not_as_it_was_is_not_served_and_is_made_whole_by_putting_it_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    blob = written(tmp_path, "The token has expired.")
    damage(_file(tmp_path, blob))
    with pytest.raises(ContentDamaged):
        folder_content(tmp_path).get(blob)
    assert written(tmp_path, "The token has expired.") == blob
    assert folder_content(tmp_path).get(blob) == b"The token has expired."


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    blob = written(tmp_path, "personal")
    content = folder_content(tmp_path)
    content.erase(blob)
    content.erase(blob)
    with pytest.raises(ContentDamaged):
        content.get(blob)


def test_a_folder_that_can_not_be_used_is_told_apart_from_damage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    content = FolderContent(tmp_path / "file" / "content")
    with pytest.raises(ContentUnavailable):
        content.put(b"x")


@pytest.mark.parametrize("address", ["", "ftp://host/x"])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="content"):
        open_content(address)


@pytest.mark.promise("A-7")
def test_bytes_are_written_and_synced_before_they_get_their_name_and_the_name_is_synced_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append(f"sync {'folder' if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.fstat(descriptor).st_size}")
        fsync(descriptor)

    def noted_replace(*names: str, **folders: int) -> None:
        done.append("name")
        replace(*names, **folders)

    monkeypatch.setattr("agentplat.content.folder.os.fsync", noted_fsync)
    monkeypatch.setattr("agentplat.content.folder.os.replace", noted_replace)
    folder_content(tmp_path).put(b"12345")
    at = done.index("name")
    assert done[at - 1] == "sync 5"
    assert done[at + 1 :] == ["sync folder"]
    # The new folders, up to the one that was there.
    assert done[: at - 1].count("sync folder") >= 2


@pytest.mark.promise("A-7")
def test_a_folder_of_the_store_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    blob = written(tmp_path, "The token has expired.")
    shelf, away = _file(tmp_path, blob).parent, tmp_path / "away"
    shelf.rename(away)
    shelf.symlink_to(away)
    content = folder_content(tmp_path)
    assert not content.has(blob)
    with pytest.raises(ContentDamaged):
        content.get(blob)
    with pytest.raises(ContentUnavailable):
        content.put(b"The token has expired.")


@pytest.mark.promise("A-6")
def test_a_store_whose_folder_is_not_there_has_lost_nothing(tmp_path: Path) -> None:
    blob = written(tmp_path, "x")
    (tmp_path / "content").rename(tmp_path / "unmounted")
    with pytest.raises(ContentUnavailable):
        folder_content(tmp_path).get(blob)
