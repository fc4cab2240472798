"""Weight files: the right one, a damaged one, a foreign one, none."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from gcdbench.core.errors import WeightsError
from gcdbench.models.lite0 import load_lite0
from gcdbench.models.resnet import load_resnet18
from gcdbench.models.weights import WeightsFile, file_sha256, load_exactly, locate, read_state


def test_digest_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"weights")
    assert file_sha256(tmp_path / "a") == hashlib.sha256(b"weights").hexdigest()


def test_published_file_with_another_digest_is_refused(tmp_path: Path) -> None:
    """A truncated download in the cache is named, not loaded."""
    path = tmp_path / "net.pth"
    path.write_bytes(b"half of it")
    published = WeightsFile(file_name="net.pth", sha256="f37072fd", places=(path,))
    with pytest.raises(WeightsError, match="f37072fd"):
        locate(published, None, advice="")


def test_given_file_wins_and_its_digest_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "mine.pth"
    path.write_bytes(b"mine")
    published = WeightsFile(file_name="net.pth", sha256="f37072fd")
    assert locate(published, str(path), advice="") == (path, hashlib.sha256(b"mine").hexdigest())
    with pytest.raises(WeightsError, match=r"no weight file"):
        locate(published, str(tmp_path / "absent.pth"), advice="")


def test_garbage_and_foreign_files_are_one_sentence(tmp_path: Path) -> None:
    """Neither a traceback of pickle nor a half-loaded network."""
    garbage = tmp_path / "garbage.pth"
    garbage.write_bytes(b"\x80\x04 nonsense")
    foreign = tmp_path / "foreign.pth"
    torch.save({"layer.weight": torch.zeros(2)}, foreign)
    for load in (load_lite0, load_resnet18):
        with pytest.raises(WeightsError, match="cannot be read"):
            load(str(garbage))
        with pytest.raises(WeightsError, match="does not fit"):
            load(str(foreign))


def test_code_in_a_weight_file_is_not_run(tmp_path: Path) -> None:
    """Pickles that are more than tensors are refused."""
    path = tmp_path / "evil.pth"
    torch.save({"state_dict": nn.Linear(2, 2)}, path)
    with pytest.raises(WeightsError, match="cannot be read"):
        read_state(path)


def test_missing_and_wrong_entries_are_counted(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(WeightsError, match="1 entries are missing"):
        load_exactly(layer, {"weight": torch.zeros(2, 3)}, tmp_path)
    with pytest.raises(WeightsError, match="size mismatch"):
        load_exactly(layer, {"weight": torch.zeros(9, 9), "bias": torch.zeros(2)}, tmp_path)
    load_exactly(
        layer, {"weight": torch.ones(2, 3), "bias": torch.ones(2), "fc.x": torch.ones(1)}, tmp_path, ignore=("fc.",)
    )
    assert layer.weight.sum() == 6


def test_listing_imports_no_torch() -> None:
    """``gcdbench list backbones`` must stay quick."""
    code = "import sys; from gcdbench.models.builtin import gcdbench_backbones; list(gcdbench_backbones());"
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'timm')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
