"""Findings about a dataset, as text for people and as plain data for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
_ORDER: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found. ``groups`` lists the samples concerned; those that belong together share a group."""

    level: Level
    kind: str
    message: str
    groups: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcome of a check of one dataset."""

    check: str
    dataset: str
    location: str
    images: int
    findings: tuple[Finding, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def count(self, level: Level) -> int:
        """Number of findings of one level."""
        return sum(finding.level == level for finding in self.findings)

    @property
    def ok(self) -> bool:
        """True without errors."""
        return self.count("error") == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data; every sample is listed."""
        table = asdict(self)
        table["findings"] = [asdict(finding) for finding in self.sorted()]
        return {**table, "facts": dict(self.facts), "ok": self.ok}

    def to_text(self, shown: int = 10) -> str:
        """Text with at most ``shown`` samples or groups per finding."""
        lines = [f"{self.check} of {self.dataset}: {self.images:,} images in {self.location}"]
        lines += [f"  {name}: {_plain(value)}" for name, value in self.facts.items()]
        for finding in self.sorted():
            lines.append(f"{finding.level.upper():8}{finding.message}")
            lines += [f"          {'  |  '.join(group)}" for group in finding.groups[:shown]]
            if len(finding.groups) > shown:
                lines.append(f"          ... and {len(finding.groups) - shown} more (all of them with --json)")
        lines.append(
            f"{'passed' if self.ok else 'FAILED'}: {self.count('error')} errors, "
            f"{self.count('warning')} warnings, {self.count('note')} notes"
        )
        return "\n".join(lines)

    def sorted(self) -> list[Finding]:
        """Findings, worst first."""
        return sorted(self.findings, key=lambda finding: _ORDER.index(finding.level))


def single(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Samples that stand alone."""
    return tuple((name,) for name in names)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
