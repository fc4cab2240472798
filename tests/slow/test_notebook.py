"""The notebook runs from its first cell to its last, and ends with a table, a gallery and a model's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "start.ipynb"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    installing = [cell for cell in notebook.cells if "install" in cell.metadata.get("tags", [])]
    assert [cell.source for cell in installing] == ["%pip install -q gcdbench"]
    notebook.cells = [cell for cell in notebook.cells if cell not in installing]  # what is tested is installed already
    monkeypatch.setenv("GCDBENCH_CACHE", str(tmp_path / "cache"))
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [str(output) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("simgcd" in text and "kmeans" in text for text in shown)
    assert (tmp_path / "found" / "gallery.html").stat().st_size > 10_000
    assert any("nearest_known_class" in text for text in shown)


def test_it_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
