"""A report of made-up runs, and a headless Chromium that speaks WebDriver over plain HTTP."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from PIL import Image

from gcdbench.plugins.manager import PluginManager
from gcdbench.reporting.report.build import build_report
from gcdbench.reporting.suites.read import load_suite
from gcdbench.runs.request import Request
from gcdbench.testing.stored import FakeRun, write_fake_run

HOSTILE = '<img src=x onerror="document.title=1"></summary><script>document.title=2</script>'


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """Path of a report with every kind of part: tables, figures, a picture, a failed run, and hostile text."""
    pytest.importorskip("matplotlib")
    study = pytest.importorskip("gcdbench_medxplore.study")
    folder, manager = tmp_path_factory.mktemp("report"), PluginManager(points=[])
    runs = folder / "runs"
    for method, accuracy in (("simgcd", 0.7), ("legogcd", 0.9), ("orca", 0.5)):
        for seed, split_seed in ((0, 0), (1, 0), (1, 1), (2, 2)):  # some suites repeat the split with the seed
            overrides = {"protocol.split_seed": split_seed} if split_seed else {}
            request = Request(method=method, dataset="kvasir", preset="laptop", seed=seed, overrides=overrides)
            directory = write_fake_run(runs, FakeRun(request=request, accuracy=accuracy), manager)
    (directory.path / "attention").mkdir()
    Image.new("RGB", (40, 30), "red").save(directory.path / "attention" / "map.png")
    failed = FakeRun(
        request=Request(method="simgcd", dataset="kvasir", preset="laptop", seed=7),
        status="failed",
        extra={"error": HOSTILE, "variant": HOSTILE, "traceback": HOSTILE},
    )
    write_fake_run(runs, failed, manager)
    suites = [load_suite(study.FOLDER / f"{name}.toml", manager) for name in ("main", "errors", "ablation", "cost")]
    text = build_report(runs, suites, manager, title="A report <b>&amp;")
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


class Browser:
    """The few WebDriver calls the tests need."""

    def __init__(self, url):
        self._url = url
        options = {
            "binary": shutil.which("chromium") or shutil.which("google-chrome"),
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/session/{made['sessionId']}"

    def _call(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=verb)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def open(self, path, *, width=1400, height=1000):
        self._call("POST", "/window/rect", {"width": width, "height": height})
        self._call("POST", "/url", {"url": path.as_uri()})

    def size(self, width, height):
        """A viewport of exactly this size, as on a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        body = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        self._call("POST", "/goog/cdp/execute", body)

    def unsize(self):
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def run(self, script, *arguments):
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def log(self):
        return self._call("POST", "/se/log", {"type": "browser"})

    def close(self):
        self._call("DELETE", "")


@pytest.fixture(scope="session")
def browser():
    driver = shutil.which("chromedriver")
    if driver is None or not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{url}/status", timeout=5)
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        opened = Browser(url)
        yield opened
        opened.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
