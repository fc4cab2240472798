"""The image store: order, identity, atomicity, sharing, room and memory."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcdbench.core.errors import DataError, DiskSpaceError
from gcdbench.datasets.source import DatasetRequest, DatasetSource
from gcdbench.datasets.sources.folder import make_folder as open_folder
from gcdbench.images.decoding import RULE, to_square
from gcdbench.images.hashing import content_order
from gcdbench.images.image_store import FORMAT, _key, prepare_store, store_bytes


def opened(root: Path) -> DatasetSource:
    return open_folder(DatasetRequest(name="folder", argument=str(root)))


def test_rows_are_the_images_in_order_of_their_hash(make_folder, cache: Path) -> None:
    source = opened(make_folder({"a": 7, "b": 5}))
    store = prepare_store(source, 28, cache, workers=1)
    assert list(store.sha256) == sorted(store.sha256)
    assert store.pixels.shape == (12, 32, 32, 3)
    assert not store.pixels.flags.writeable
    assert sorted(store.order.tolist()) == list(range(12))
    for row, index in enumerate(store.order):
        path = Path(source.location) / source.keys[index]
        assert store.sha256[row] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert np.array_equal(store.pixels[row], to_square(Image.open(path), 32))
        assert source.card.classes[source.labels[index]] == path.parent.name


def test_equal_contents_are_ordered_by_class_then_key() -> None:
    digests = np.zeros((4, 32), dtype=np.uint8)
    digests[0] = 9
    order = content_order(digests, np.array([0, 1, 0, 0]), ("z", "a", "y", "b"))
    assert order.tolist() == [3, 2, 1, 0]


def test_names_do_not_matter_and_contents_do(make_folder, cache: Path) -> None:
    first = make_folder({"a": 4, "b": 4}, name="first")
    second = make_folder({"zz": 4, "q": 4}, name="second")  # the same images under other names
    other = make_folder({"a": 4, "b": 4}, name="other", seed=77)
    stores = [prepare_store(opened(root), 28, cache, workers=1) for root in (first, second, other)]
    assert stores[0].key == stores[1].key != stores[2].key
    assert stores[0].sha256 == stores[1].sha256
    larger = prepare_store(opened(first), 32, cache, workers=1)
    assert larger.key != stores[0].key


def test_the_folder_holds_neither_names_nor_labels(make_folder, cache: Path) -> None:
    root = make_folder({"malignant": 4, "benign": 4}, name="secretname")
    source = opened(root)
    store = prepare_store(source, 28, cache, workers=1)
    assert {path.name for path in store.folder.iterdir()} == {"pixels.npy", "sha256.npy", "meta.json"}
    meta = (store.folder / "meta.json").read_text()
    assert "malignant" not in meta
    assert "0001" not in meta
    on_disk = sum(path.stat().st_size for path in store.folder.iterdir())
    assert on_disk - 2000 < store_bytes(8, 28) < on_disk  # headers, checksums and the description come on top


def test_the_second_time_nothing_is_read(make_folder, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(make_folder({"a": 4, "b": 4}))
    first = prepare_store(source, 28, cache, workers=1)

    def forbidden(self, index: int) -> bytes:
        raise AssertionError("read again")

    monkeypatch.setattr(type(source.raw), "__call__", forbidden)
    second = prepare_store(opened(Path(source.location)), 28, cache, workers=1)
    assert np.array_equal(first.pixels, second.pixels)
    assert np.array_equal(first.order, second.order)


def test_a_changed_file_is_noticed_even_with_its_old_time(make_folder, cache: Path) -> None:
    root = make_folder({"a": 3, "b": 3})
    before = prepare_store(opened(root), 28, cache, workers=1)
    victim = root / "a" / "0000.png"
    times = victim.stat()
    content = bytearray(victim.read_bytes())
    shutil.copy(root / "b" / "0002.png", victim)
    victim.write_bytes(victim.read_bytes() + bytes(max(0, len(content) - victim.stat().st_size)))
    os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert prepare_store(opened(root), 28, cache, workers=1).key != before.key


def test_worker_processes_give_the_same_store(make_folder, tmp_path: Path) -> None:
    source = opened(make_folder({"a": 90, "b": 60}))
    calls: list[tuple[str, int, int]] = []
    one = prepare_store(source, 16, tmp_path / "one", workers=1)
    two = prepare_store(source, 16, tmp_path / "two", workers=2, progress=lambda *call: calls.append(call))
    assert one.key == two.key
    assert np.array_equal(one.pixels, two.pixels)
    assert [call for call in calls if call[0] == "decoding images"][-1][1:] == (150, 150)
    done = [call[1] for call in calls if call[0] == "decoding images"]
    assert done == sorted(done)


def test_unreadable_images_are_named_and_leave_nothing(make_folder, cache: Path) -> None:
    root = make_folder({"a": 4, "b": 4}, suffix=".jpg")
    (root / "a" / "0001.jpg").write_bytes((root / "a" / "0001.jpg").read_bytes()[:-200])
    (root / "b" / "0003.jpg").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        prepare_store(opened(root), 28, cache, workers=1)
    assert "2 of 8" in caught.value.message
    assert "a/0001.jpg" in caught.value.message
    assert "b/0003.jpg" in caught.value.message
    assert list((cache / "stores").iterdir()) == []


def test_a_full_disk_is_refused_before_the_work(make_folder, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(make_folder({"a": 4, "b": 4}))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 5000, 5000))
    with pytest.raises(DiskSpaceError) as caught:
        prepare_store(source, 28, cache, workers=1)
    assert "needs 67.1 MB (25.2 kB and 67.1 MB that stay free)" in caught.value.message
    assert "5 kB are free" in caught.value.message
    assert list((cache / "stores").iterdir()) == []


def test_leftovers_of_a_killed_build_are_gone_before_the_disk_is_measured(
    make_folder, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a large build that was killed would have no room to be repeated."""
    source = opened(make_folder({"a": 4, "b": 4}))
    store = prepare_store(source, 28, cache, workers=1)
    killed = store.folder / ".tmp-pixels.npy"
    (store.folder / "pixels.npy").rename(killed)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 0, 5000 if killed.exists() else 10**9))
    assert len(prepare_store(source, 28, cache, workers=1)) == 8
    assert list((cache / "stores").iterdir()) == [store.folder]


@pytest.mark.parametrize("keep", [0, 50, -1], ids=["empty", "half a header", "a byte short"])
def test_a_damaged_store_is_made_again(make_folder, cache: Path, keep: int) -> None:
    source = opened(make_folder({"a": 4, "b": 4}))
    store = prepare_store(source, 28, cache, workers=1)
    content = (store.folder / "pixels.npy").read_bytes()
    (store.folder / "pixels.npy").write_bytes(content[:keep])
    prepare_store(source, 28, cache, workers=1)
    assert (store.folder / "pixels.npy").read_bytes() == content


def test_a_store_that_is_cleared_while_it_is_opened_is_made_again(
    make_folder, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(make_folder({"a": 4, "b": 4}))
    prepare_store(source, 28, cache, workers=1)
    monkeypatch.setattr("gcdbench.core.cached_arrays.touch", lambda file: shutil.rmtree(file.parent))
    assert len(prepare_store(source, 28, cache, workers=1).pixels) == 8


class Filled:
    """A decoder with state."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __call__(self, data: bytes) -> np.ndarray:
        return decode_filled(data, self.value)


def decode_filled(data: bytes, value: int = 0) -> np.ndarray:
    return np.full((8, 8, 3), value, dtype=np.uint8)


def closed_over(value: int):
    return lambda data: decode_filled(data, value)


@pytest.mark.parametrize("make", [Filled, lambda value: partial(decode_filled, value=value), closed_over])
def test_decoders_with_parameters_need_a_key_and_get_stores_of_their_own(make_folder, cache: Path, make) -> None:
    """Two of one class or function would otherwise share a store."""
    source = opened(make_folder({"a": 4, "b": 4}))
    with pytest.raises(DataError, match="'decode' is") as caught:
        prepare_store(replace(source, decode=make(1)), 28, cache, workers=1)
    assert caught.value.hint is not None
    assert "'key'" in caught.value.hint
    for value in (1, 2):
        decode = make(value)
        decode.key = f"value {value}"
        assert (prepare_store(replace(source, decode=decode), 28, cache, workers=1).pixels == value).all()
    assert (prepare_store(replace(source, decode=decode_filled), 28, cache, workers=1).pixels == 0).all()


def test_the_key_of_a_plain_function_is_its_name() -> None:
    """Keys of image stores name runs, so they must stay what they were."""
    rows = np.zeros((2, 32), dtype=np.uint8)
    for decode, how in ((None, "image-file"), (decode_filled, "decode_filled")):
        head = f"store/{FORMAT}|{RULE}|32|{how}|2|".encode()
        assert _key(rows, 32, decode) == hashlib.sha256(head + bytes(64)).hexdigest()[:32]


def test_an_empty_dataset_and_a_tiny_size_are_refused(make_folder, cache: Path) -> None:
    source = opened(make_folder({"a": 2, "b": 2}))
    with pytest.raises(DataError, match="too small"):
        prepare_store(source, 4, cache, workers=1)


PREPARE = """
import sys
from pathlib import Path
from gcdbench.datasets.sources.folder import make_folder
from gcdbench.images.image_store import prepare_store
from gcdbench.datasets.source import DatasetRequest

if __name__ == "__main__":
    source = make_folder(DatasetRequest(name="folder", argument=sys.argv[1]))
    def progress(stage, done, total):
        print(stage, done, total, flush=True)
    store = prepare_store(source, 64, Path(sys.argv[2]), workers=2, progress=progress)
    print("KEY", store.key, flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "prepare_it.py"
    path.write_text(PREPARE)
    return path


def start(script: Path, root: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(script), str(root), str(cache)], stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_build_once(make_folder, cache: Path, script: Path) -> None:
    root = make_folder({"a": 100, "b": 100})
    both = [start(script, root, cache) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    keys = {output.split("KEY ")[1].strip() for output in outputs}
    assert len(keys) == 1
    assert sum("decoding images 200 200" in output for output in outputs) == 1
    assert [path.name for path in (cache / "stores").iterdir()] == list(keys)


def test_a_killed_process_leaves_no_store_and_no_workers(make_folder, cache: Path, script: Path) -> None:
    psutil = pytest.importorskip("psutil")
    root = make_folder({"a": 250, "b": 250})
    process = start(script, root, cache)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("decoding images") and not line.startswith("decoding images 0 "):
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    stores = cache / "stores"
    assert not [*stores.glob("*/pixels.npy")]
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    store = prepare_store(opened(root), 64, cache, workers=2)
    assert [path.name for path in stores.iterdir()] == [store.key]
    assert len(store) == 500


def test_a_script_without_a_guard_can_prepare(make_folder, cache: Path, tmp_path: Path) -> None:
    """multiprocessing would run the script again in every worker, and fail."""
    root = make_folder({"a": 80, "b": 80})
    script = tmp_path / "unguarded.py"
    script.write_text(PREPARE.replace('if __name__ == "__main__":', "if True:"))
    process = start(script, root, cache)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert output.count("KEY") == 1


def test_a_source_that_workers_cannot_get_is_refused(make_folder, cache: Path) -> None:
    source = opened(make_folder({"a": 80, "b": 80}))
    local = replace(source, raw=lambda index: source.raw(index), fingerprint=None)
    with pytest.raises(DataError, match="worker processes"):
        prepare_store(local, 16, cache, workers=2)
    assert len(prepare_store(local, 16, cache, workers=1)) == 160


MEASURE = """
import resource, sys
from pathlib import Path
import numpy as np
from gcdbench.datasets.card import load_card
from gcdbench.images.image_store import prepare_store
from gcdbench.datasets.source import DatasetSource

class Noise:
    def __call__(self, index):
        return np.random.default_rng(index).bytes(96 * 96 * 3)

def decode(data):
    return np.frombuffer(data, dtype=np.uint8).reshape(96, 96, 3)

if __name__ == "__main__":
    n = int(sys.argv[1])
    source = DatasetSource(card=load_card("kvasir"), keys=tuple(map(str, range(n))), labels=np.arange(n) % 8,
                           raw=Noise(), decode=decode)
    prepare_store(source, 96, Path(sys.argv[2]), workers=int(sys.argv[3]))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(own // 1024, workers // 1024)
"""


def test_memory_does_not_grow_with_the_dataset(tmp_path: Path) -> None:
    """Ten times the images (109 MB of pixels instead of 11) may cost a few megabytes of names and hashes."""
    script = tmp_path / "measure_it.py"
    script.write_text(MEASURE)
    peaks = []
    for n in (300, 3000):
        arguments = [sys.executable, str(script), str(n), str(tmp_path / str(n)), "2"]
        output = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
        peaks.append([int(word) for word in output.stdout.split()])
    assert peaks[1][0] - peaks[0][0] < 24
    assert peaks[1][1] - peaks[0][1] < 24
