"""The public interface for plugins: complete, cheap to import, and kind to names of the interface before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gcdbench.api
from gcdbench.images.image_set import ImageSet


def test_every_name_is_there_and_offered_for_completion() -> None:
    assert dir(gcdbench.api) == sorted(gcdbench.api.__all__)
    for name in dir(gcdbench.api):
        assert getattr(gcdbench.api, name) is not None


def test_importing_it_and_what_an_executor_needs_takes_no_torch() -> None:
    script = (
        "import sys, gcdbench.api\n"
        "from gcdbench.api import Executor, Job, Outcome, Placement, RunRequest, decode_job, encode_job, run_job\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_of_the_interface_before_works_with_a_warning_that_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="ImageView is called ImageSet"):
        assert gcdbench.api.ImageView is ImageSet
    assert "ImageView" not in dir(gcdbench.api)
    with pytest.raises(AttributeError, match="no attribute 'ImageVew'"):
        _ = gcdbench.api.ImageVew


def test_the_package_can_be_run_like_the_command() -> None:
    said = [
        subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True).stdout
        for module in ("gcdbench", "gcdbench.cli.main")
    ]
    assert said[0] == said[1]
    wrong = subprocess.run([sys.executable, "-m", "gcdbench", "lst"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "Did you mean 'list'?" in wrong.stderr
