"""Archives and files made to mislead: refused with a sentence, or without effect; nothing is executed or written."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults.tool import Answer, Tool
from benchmarks.faults.trial import CRASH, HANG, OK, SILENT, Case, Outcome
from benchmarks.faults.world import SMALL, SUITE

Members = dict[str, bytes]
ESCAPE = "\x1b[2J\x1b[31mred\x07"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
MARKUP_PARTS = ("<script>alert(1)", "<img src=x onerror")
FORMULA = "=cmd|' /C calc'!A0"
HUGE = 10**400


def read_members(archive: Path) -> Members:
    """Every member of an archive."""
    with zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_members(path: Path, members: Members, *, sealed: bool = True) -> None:
    """An archive; ``sealed``: with a manifest that fits its content."""
    if sealed and "manifest.json" in members:
        manifest = json.loads(members["manifest.json"])
        manifest["files"] = {
            name: {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
            for name, body in members.items()
            if name != "manifest.json"
        }
        members = {**members, "manifest.json": json.dumps(manifest).encode()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body in members.items():
            file.writestr(name, body)


def _seal(content: dict[str, Any]) -> bytes:
    """A table whose own digest fits again, where it has one: who crafts a file can compute a digest as well."""
    plain = {key: value for key, value in content.items() if key != "sha256"}
    if "sha256" in content:
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        plain["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(plain).encode()


def _recorded(members: Members, run: str) -> Members:
    """The members with the digests that run.json holds of the others made to fit, and its own."""
    prefix = run.rpartition("/")[0]
    try:
        record = json.loads(members[run])
        for name, entry in record["files"].items():
            if (body := members.get(f"{prefix}/{name}")) is not None:
                entry |= {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}
        for entry in record["predictions"].values():
            entry["sha256"] = hashlib.sha256(members[f"{prefix}/{entry['file']}"]).hexdigest()
        return {**members, run: _seal(record)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return members  # what cannot be read needs no digest


def _one(members: Members, suffix: str) -> str:
    return next(name for name in sorted(members) if name.endswith(suffix))


def _json_changes() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Changes of the JSON files of a run, sealed with right hashes."""
    changes: dict[str, tuple[str, Callable[[Any], Any]]] = {}

    def put(name: str, file: str, path: str, value: object) -> None:
        def change(content: Any) -> Any:
            content = copy.deepcopy(content)
            place = content
            *parents, last = path.split("/")
            for key in parents:
                place = place[key]
            place[last] = value
            return content

        changes[name] = (file, change)

    scores = "sets/transductive/scores"
    for key in (
        "all",
        "old",
        "new",
        "false_old",
        "false_new",
        "true_old_confusion",
        "true_new_confusion",
        "nmi",
        "ari",
    ):
        put(f"{key} of 0.0", "scores.json", f"{scores}/{key}", 0.0)
        put(f"{key} a text", "scores.json", f"{scores}/{key}", "high")
    for value, title in ((HUGE, "a giant number"), (None, "null"), ([], "a list"), ({}, "a table"), (True, "true")):
        for path in (f"{scores}/all", "sets/transductive/n", "sets/transductive/old_share", "sets", "schema"):
            put(f"{path} is {title}", "scores.json", path, value)
        for path in ("seed", "image_size", "method", "variant", "identity", "predictions", "status", "split", "schema"):
            put(f"{path} is {title}", "run.json", path, value)
    put("an invented metric", "scores.json", f"{scores}/accuracy_by_experts", 99.9)
    put("a confusion matrix of another run", "scores.json", "sets/transductive/confusion", [[1, 2], [3, 4]])
    for text, title in ((ESCAPE, "terminal escapes"), (MARKUP, "markup"), (FORMULA, "a formula")):
        for key in ("variant", "preset", "protocol", "backbone", "views", "started"):
            put(f"{title} in {key}", "run.json", key, text)
        put(f"{title} in a metric's name", "scores.json", "metrics", {text: "gcdbench/1"})
        put(f"{title} in a metric's error", "scores.json", "metric_errors", {"m": text})
    return changes


def archive_cases(members: Members) -> Iterator[tuple[str, Members, bool]]:
    """Name, members, and whether the manifest is made to fit; where it is, all other digests are as well."""
    run = _one(members, "run.json")
    for name, crafted, sealed in _changed_archives(members):
        yield name, _recorded(crafted, run) if sealed else crafted, sealed


def _changed_archives(members: Members) -> Iterator[tuple[str, Members, bool]]:
    run = _one(members, "run.json")
    prefix = run.rpartition("/")[0]
    for title, (file, change) in _json_changes().items():
        name = f"{prefix}/{file}"
        yield f"{file}: {title}", {**members, name: _seal(change(json.loads(members[name])))}, True
    for file in ("run.json", "scores.json", "env.json", "events.jsonl", "config.toml"):
        name = f"{prefix}/{file}"
        yield f"{file}: nested 100,000 deep", {**members, name: b"[" * 100_000}, True
        yield f"{file}: NaN", {**members, name: b'{"schema": NaN}'}, True
        yield f"{file}: not UTF-8", {**members, name: b"\xff\xfe\x00{"}, True
        yield f"{file}: empty", {**members, name: b""}, True
        yield f"{file}: missing", {key: value for key, value in members.items() if key != name}, True
    for field in ("python", "cpu", "platform", "device"):
        for text, title in ((ESCAPE, "terminal escapes"), (MARKUP, "markup"), (FORMULA, "a formula")):
            name = f"{prefix}/env.json"
            content = json.loads(members[name]) | {field: text}
            yield f"env.json: {title} in {field}", {**members, name: _seal(content)}, True
    events = f"{prefix}/events.jsonl"
    for title, line in {
        "an epoch of text": {"type": "epoch", "epoch": "x", "losses": []},
        "an unknown event": {"type": "surprise"},
        "markup": {"type": "note", "text": MARKUP},
        "terminal escapes": {"type": "note", "text": ESCAPE},
    }.items():
        body = members[events] + json.dumps(line).encode() + b"\n"
        yield f"events.jsonl: {title}", {**members, events: body}, True
    for extra in (
        f"{prefix}/previous/run.json", f"{prefix}/checkpoint/latest.pt", f"{prefix}/lock", f"{prefix}/.hidden.json",
        f"{prefix}/names.json.exe", "../outside.json", "/tmp/outside.json", "C:\\outside.json", f"{prefix}/../x.json",
        f"{prefix}/a/b/c.json", f"{prefix}/CON.json", "x.json", f"{prefix}/new\nline.json",
    ):  # fmt: skip
        yield f"a member {extra!r}", {**members, extra: b"{}"}, True
    predictions = _one(members, "transductive.npz")
    yield "a pickle among the predictions", {**members, predictions: _pickled_npz()}, True
    yield (
        "predictions cut in half",
        {**members, predictions: members[predictions][: len(members[predictions]) // 2]},
        True,
    )
    yield "a wrong hash", {**members, predictions: members[predictions] + b"x"}, False
    yield "no manifest", {key: value for key, value in members.items() if key != "manifest.json"}, False
    yield "another format", {**members, "manifest.json": b'{"format": "zip/9", "files": {}}'}, False
    yield "a manifest of a list", {**members, "manifest.json": b"[]"}, False


class _Canary:
    """Executes on unpickling."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch canary",)


def _pickled_npz() -> bytes:
    out = io.BytesIO()
    body = pickle.dumps(_Canary())
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (), }".ljust(127) + b"\n"
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("cluster.npy", header + body)
    return out.getvalue()


def hostile_archives(empty: Tool, finished: Tool) -> Iterator[Case]:
    """Import each crafted archive into an empty store, then look at what is there."""
    finished.call("export", "good.zip", "--method", "simgcd")
    good = finished.home / "good.zip"
    members = read_members(good)
    truth = finished.scores()

    def crafted(name: str, make: Callable[[Path], None]) -> Case:
        return Case(section="crafted", group="archives", name=name, run=partial(_import, empty, make, truth))

    for name, content, sealed in archive_cases(members):
        yield crafted(name, partial(write_members, members=content, sealed=sealed))
    for name, make in _raw_archives(good).items():
        yield crafted(name, make)


def _import(empty: Tool, make: Callable[[Path], None], truth: dict[str, Any], folder: Path) -> Outcome:
    tool = empty.copy(folder / "home")
    make(tool.home / "bad.zip")
    before = _outside(tool)
    answer = tool.call("import", "bad.zip")
    return _judge(tool, answer, before, truth)


def _raw_archives(good: Path) -> dict[str, Callable[[Path], None]]:
    """Archives that Python's writer does not make."""

    def link(path: Path) -> None:
        path.write_bytes(good.read_bytes())
        with zipfile.ZipFile(path, "a") as file:
            info = zipfile.ZipInfo("a/b/c/link.json")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(info, "/etc/passwd")

    def twice(path: Path) -> None:
        path.write_bytes(good.read_bytes())
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(zipfile.ZipFile(good).namelist()[1], b"{}")

    def bomb(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("manifest.json", b"0" * 300_000_000)

    return {
        "a symbolic link": link,
        "a member twice": twice,
        "a bomb of 300 MB": bomb,
        "not a zip": lambda path: (path.write_bytes(b"PK\x03\x04 not really"), None)[1],
        "an empty file": lambda path: (path.write_bytes(b""), None)[1],
        "cut in half": lambda path: (path.write_bytes(good.read_bytes()[: good.stat().st_size // 2]), None)[1],
        "a folder": lambda path: path.mkdir(),
    }


def _outside(tool: Tool) -> set[str]:
    return {
        str(path) for path in tool.home.rglob("*") if tool.runs not in path.parents and tool.cache not in path.parents
    }


def _judge(tool: Tool, answer: Answer, before: set[str], truth: dict[str, Any]) -> Outcome:
    def trial(verdict: str, detail: str = "") -> Outcome:
        return Outcome(verdict=verdict, detail=detail)

    if answer.code is None:
        return trial(HANG)
    if answer.crashed:
        return trial(CRASH, answer.err.strip()[-200:])
    if any(tool.home.rglob("canary")):
        return trial(SILENT, "code was executed")
    if extra := {path for path in _outside(tool) - before if path not in (str(tool.runs), str(tool.cache))}:
        return trial(SILENT, f"wrote {sorted(extra)[0]}")
    if answer.code != 0:
        return trial(OK, f"refused: {answer.err.strip()[:200]}") if answer.refused else trial(CRASH, "no sentence")
    for run, sets in tool.scores().items():
        for name, scores in sets.items():
            known = truth.get(run, {}).get(name, {})
            if any(known.get(key) != value for key, value in scores.items() if key in known):
                return trial(SILENT, "a score that does not follow from the predictions was taken")
            if set(scores) - set(known):
                return trial(SILENT, "a score of a metric that is not installed was taken")
    return trial(*_shown(tool))


def _shown(tool: Tool) -> tuple[str, str]:
    """Whether what a crafted run says of itself reaches a terminal, a page or a spreadsheet as a command."""
    for arguments in (("status",), ("table",), ("table", "--format", "csv"), ("report", "-o", "page.html")):
        answer = tool.call(*arguments)
        if answer.crashed:
            return CRASH, f"'{' '.join(arguments)}': {answer.err.strip()[-150:]}"
        if "\x1b" in answer.out + answer.err or "\x07" in answer.out + answer.err:
            return SILENT, f"'{' '.join(arguments)}' sends terminal escapes"
        if "csv" in arguments and re.search(r'(^|,)"?[=+@]', answer.out, re.M):
            return SILENT, "a formula in a spreadsheet"
    page = tool.home / "page.html"
    # The page has a script of its own, so what was crafted is looked for, whole and in its two parts.
    if page.is_file() and any(part in page.read_text(errors="replace") for part in MARKUP_PARTS):
        return SILENT, "markup in the report"
    return OK, "accepted, without effect"


def file_cases(home: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Crafted files of a user's own, each with the command that reads it; made in ``home``."""

    def put(name: str, content: str | bytes) -> str:
        (home / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    run = ("run", "--method", "ss-kmeans", *SMALL, "--dataset")
    os.mkfifo(home / "pipe.png")
    for target in ("/dev/zero", "/dev/null", "pipe.png", "/proc/self/mem", ".", "missing.png", "/etc/shadow"):
        rows = "".join(f"images/class{c}/{i:03d}.png,c{c}\n" for c in range(4) for i in range(8))
        yield (
            f"a list that names {target}",
            (*run, f"csv:{put(f'list{abs(hash(target))}.csv', f'path,label{chr(10)}{rows}{target},c0{chr(10)}')}"),
        )
    lists: dict[str, str | bytes] = {
        "nothing in it": "",
        "no header": "images/class0/000.png,a\n",
        "binary": bytes(range(256)),
        "a very long line": "path,label\n" + "x" * 2_000_000 + ",a\n",
        "quotes that never end": 'path,label\n"images/class0/000.png,a\n' * 3,
    }
    for name, content in lists.items():
        yield f"a list with {name}", (*run, f"csv:{put('odd.csv', content)}")
    tables: dict[str, str | bytes] = {
        "binary": bytes(range(256)),
        "deep nesting": "a = " + "[" * 5000 + "]" * 5000,
        "wrong types": 'title = 3\nrows = "x"\n',
        "an unknown key": SUITE + "\n[evil]\nx = 1\n",
    }
    for name, content in tables.items():
        yield f"a suite: {name}", ("sweep", put("odd.toml", content), "--preset", "smoke", "--dry-run")
        yield f"a config: {name}", ("run", "--config", put("odd2.toml", content))
    good = (home / "images/class0/000.png").read_bytes()
    for name, body in {
        "cut": good[: len(good) // 2],
        "empty": b"",
        "not an image": b"hello",
        "a bomb": b"\x89PNG\r\n\x1a\n" + bytes.fromhex("0000000d494844520000ffff0000ffff0802000000") + b"\0" * 40,
    }.items():
        folder = home / f"bad-{name.replace(' ', '-')}"
        for label in range(4):
            (folder / f"class{label}").mkdir(parents=True)
            for number in range(6):
                (folder / f"class{label}" / f"{number}.png").write_bytes(
                    (home / f"images/class{label}/{number:03d}.png").read_bytes()
                )
        (folder / "class0" / "bad.png").write_bytes(body)
        yield f"an image: {name}", (*run, f"folder:{folder.name}")
    for name, body in {"a pickle": pickle.dumps(_Canary()), "text": b"x", "empty": b""}.items():
        weights = put(f"weights-{len(body)}.pth", body)
        yield f"weights: {name}", (*run, "folder:images", "--set", f"weights={weights}")
        yield f"a split: {name}", (*run[:4], *SMALL[:-2], "--dataset", "folder:images", "--split", weights)


def hostile_files(empty: Tool, scratch: Path) -> Iterator[Case]:
    """Run each command on its crafted file."""
    for name, _ in file_cases(empty.copy(scratch / "hostile").home):
        yield Case(section="crafted", group="files", name=name, run=partial(_read, empty, name))


def _read(empty: Tool, name: str, folder: Path) -> Outcome:
    tool = empty.copy(folder / "home")
    # Made where it is read: a pipe cannot be copied.
    arguments = next(arguments for case, arguments in file_cases(tool.home) if case == name)
    before = _outside(tool)
    answer = tool.call(*arguments, patience=60)
    if answer.code == 0:
        return Outcome(verdict=SILENT, detail="accepted")
    return _judge(tool, answer, before, {})
