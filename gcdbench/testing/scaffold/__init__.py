"""A new plugin package from templates: an entry point, one thing that works, and tests that pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from gcdbench.core.errors import ConfigError
from gcdbench.core.files import write_text
from gcdbench.plugins.specs import API_VERSION

KINDS = ("method", "dataset", "metric", "backbone", "executor")
COMMON = "common"


@dataclass(frozen=True, kw_only=True)
class Names:
    """One name in the spellings that a package needs: ``my-method``, ``my_method`` and ``MyMethod``."""

    plugin: str
    package: str
    class_name: str

    @classmethod
    def of(cls, name: str) -> Names:
        """The spellings of a name as people write it."""
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
            raise ConfigError(
                f"'{name}' cannot be the name of a plugin.",
                hint="Use lower-case letters, digits and hyphens: my-method.",
            )
        words = name.split("-")
        return cls(plugin=name, package="_".join(words), class_name="".join(word.capitalize() for word in words))


def make_package(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the package into ``folder``, which must not exist or be empty; returns the files."""
    if kind not in KINDS:
        raise ConfigError(f"There is no scaffold for '{kind}'.", hint=f"There is one for {', '.join(KINDS)}.")
    names = Names.of(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"'{folder}' exists already.", hint="Choose another place with --into.")
    environment = Environment(
        loader=PackageLoader("gcdbench.testing.scaffold", "templates"),
        autoescape=False,  # these are Python and TOML files, and names are checked above
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    written = []
    for template in sorted(environment.list_templates()):
        origin, _, place = template.partition("/")
        if origin not in (COMMON, kind) or not template.endswith(".j2"):
            continue
        target = folder / place.removesuffix(".j2").replace("PACKAGE", names.package)
        text = environment.get_template(template).render(kind=kind, names=names, api=API_VERSION)
        write_text(target, text)
        written.append(target)
    return written
