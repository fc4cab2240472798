"""``gcdbench data verify``: is this copy of a dataset the one that its card describes?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gcdbench.core.work import Progress
from gcdbench.datasets.checksums import file_checksum
from gcdbench.datasets.integrity.counts import count_findings
from gcdbench.datasets.integrity.images import ignored_files, odd_modes, unreadable_images
from gcdbench.datasets.integrity.report import Finding, Report
from gcdbench.datasets.integrity.scan import scan_images
from gcdbench.datasets.source import DatasetSource


def verify(
    source: DatasetSource, *, workers: int, cache: Path | None = None, progress: Progress | None = None
) -> Report:
    """Counts, checksums where known, decodability and modes of every image, against the card."""
    findings = [*count_findings(source), *checksum_findings(source, cache, progress)]
    scan = scan_images(source, workers=workers, progress=progress)
    findings += unreadable_images(source, scan)
    findings += odd_modes(source, scan, "error")
    findings += [finding for finding in ignored_files(source) if finding.level != "note"]
    return Report(
        check="verify",
        dataset=source.card.name,
        location=source.location,
        images=len(source),
        findings=tuple(findings),
        facts={"classes": dict(zip(source.card.classes, source.class_counts, strict=True))},
    )


def checksum_findings(source: DatasetSource, cache: Path | None, progress: Progress | None) -> Iterable[Finding]:
    """Checksums of the published files that are here; unpacked folders have none."""
    here = Path(source.location.partition(" and ")[0])
    folders = [here, here.parent, here.parent.parent]
    checked = 0
    for name, expected in source.card.checksums.items():
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is None:
            continue
        checked += 1
        found = file_checksum(file, expected.partition(":")[0], cache, progress)
        if found != expected:
            message = f"{file} has the checksum {found}, the card says {expected}"
            yield Finding(level="error", kind="checksum", message=message)
    if not checked:
        why = "none of the published files is here" if source.card.checksums else "the card knows none"
        yield Finding(level="note", kind="checksum", message=f"no checksum was checked: {why}")
