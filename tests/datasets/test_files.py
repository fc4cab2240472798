"""Only regular files are read: nothing hangs on a device or a pipe, and links in a circle end."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from gcdbench.datasets.sources.walk import FileReader, read_regular
from tests.data.conftest import noise_image
from tests.data.loading import opened, refused

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and devices as files")


def within(seconds: float, call) -> list:
    """What ``call`` gives, or a failure when it takes longer: a hang must fail the test, not stop it."""
    answers: list = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert answers, "it hangs"
    return answers


@pytest.mark.parametrize("what", ["device", "pipe", "socket", "folder"])
def test_a_list_may_name_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    path = tmp_path / "strange.png"
    if what == "device":
        path.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            monkeypatch.chdir(tmp_path)  # the path of a socket must be short
            end.bind("strange.png")
    else:
        path.mkdir()
    (tmp_path / "list.csv").write_text("path,label\nstrange.png,a\n")
    [message] = within(20, lambda: refused(f"csv:{tmp_path / 'list.csv'}"))
    assert "line 2: 'strange.png'" in message
    assert ("folder" if what == "folder" else "not a file") in message


def test_devices_by_their_own_names(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("path,label\n/dev/zero,a\n")
    [message] = within(20, lambda: refused(f"csv:{tmp_path / 'list.csv'}"))
    assert "not a file" in message
    [message] = within(20, lambda: refused("csv:/dev/zero"))
    assert "not a file" in message


def test_a_file_that_becomes_a_pipe_after_it_was_listed(tmp_path: Path) -> None:
    noise_image(1).save(tmp_path / "x.png")
    (tmp_path / "list.csv").write_text("path,label\nx.png,a\n")
    source = opened(f"csv:{tmp_path / 'list.csv'}")
    (tmp_path / "x.png").unlink()
    os.mkfifo(tmp_path / "x.png")
    [error] = within(20, lambda: source.raw(0))
    assert isinstance(error, OSError)


def test_a_list_may_name_any_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    noise_image(1).save(tmp_path / "elsewhere" / "one.png")
    noise_image(2).save(tmp_path / "elsewhere" / "two.png")
    (tmp_path / "lists").mkdir()
    text = f"path,label\n../elsewhere/one.png,a\n{tmp_path / 'elsewhere' / 'two.png'},b\n"
    (tmp_path / "lists" / "list.csv").write_text(text)
    source = opened(f"csv:{tmp_path / 'lists' / 'list.csv'}")
    assert source.raw(0) == (tmp_path / "elsewhere" / "one.png").read_bytes()
    assert source.raw(1) == (tmp_path / "elsewhere" / "two.png").read_bytes()


def test_a_folder_with_pipes_devices_and_circles(make_folder, tmp_path: Path) -> None:
    root = make_folder({"a": 2, "b": 2})
    os.mkfifo(root / "a" / "pipe.png")
    (root / "a" / "zero.png").symlink_to("/dev/zero")
    (root / "a" / "up").symlink_to(root)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "two").symlink_to(tmp_path / "one")
    (root / "b" / "circle").symlink_to(tmp_path / "one")
    [source] = within(20, lambda: opened(f"folder:{root}"))
    assert len(source) == 4
    reasons = {item.key: item.reason for item in source.raw.ignored}
    assert reasons["a/pipe.png"] == reasons["a/zero.png"] == "neither a file nor a folder"
    assert "a/up" in reasons
    assert "b/circle/two" in reasons


def test_large_files_are_read_whole(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "x.bin").write_bytes(content)
    assert read_regular(tmp_path / "x.bin") == content
    assert FileReader(root=str(tmp_path), names=("x.bin",))(0) == content
