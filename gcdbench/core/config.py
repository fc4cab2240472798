"""Typed settings: frozen dataclasses, dotted overrides, checked against the fields' annotations."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union

from gcdbench.core.errors import ConfigError

T = TypeVar("T")

ADDED_LATER: Mapping[str, bool] = types.MappingProxyType({"added later": True})
"""For a field that its config did not have from the beginning: ``field(default=…, metadata=ADDED_LATER)``.

While it has its default, :func:`to_plain` leaves it out, and so does a run's identity, which is made of that: runs
stored before the field existed keep their ids. The default must be what was done before, and must never change.
"""


@dataclasses.dataclass(frozen=True)
class Bounds:
    """The numbers that a field takes, as in ``tau: Annotated[float, Bounds(above=0)]``; all bounds given must hold."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def contains(self, number: float) -> bool:
        """Whether a field takes ``number``."""
        return self.least <= number <= self.most and self.above < number < self.below

    def __str__(self) -> str:
        words = {"least": "at least", "most": "at most", "above": "above", "below": "below"}
        given = ((words[name], value) for name, value in dataclasses.asdict(self).items() if math.isfinite(value))
        return " and ".join(f"{word} {value:g}" for word, value in given)


Share = Annotated[float, Bounds(least=0, most=1)]
Positive = Annotated[float, Bounds(above=0)]
NotNegative = Annotated[float, Bounds(least=0)]
Count = Annotated[int, Bounds(least=1)]


def field_types(config_class: type[Any]) -> dict[str, Any]:
    """Every settable key of a config class with its type; nested dataclasses give dotted keys."""
    hints = typing.get_type_hints(config_class, include_extras=True)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config_class):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            nested = field_types(typing.cast(type[Any], kind))
            found.update({f"{field.name}.{key}": value for key, value in nested.items()})
        else:
            found[field.name] = kind
    return found


def convert(key: str, value: object, kind: Any) -> Any:
    """``value`` (text from the command line, or a TOML value) as an instance of ``kind``."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        found = convert(key, value, arguments[0])
        for bounds in arguments[1:]:
            if isinstance(bounds, Bounds) and not bounds.contains(found):
                raise ConfigError(f"'{key}' must be {bounds}, not {value}.")
        return found
    if origin in (Union, types.UnionType):
        options = [a for a in arguments if a is not type(None)]
        # Where any text is allowed, "none" is that text: weights=none asks for a random network.
        says_none = isinstance(value, str) and value.lower() == "none" and str not in options
        if type(None) in arguments and (value is None or says_none):
            return None
        if len(options) == 1:
            return convert(key, value, options[0])
        for option in options:
            try:
                return convert(key, value, option)
            except ConfigError:
                continue
        raise _misfit(key, value, kind)
    if origin is Literal:
        for allowed in arguments:
            if value == allowed or (isinstance(value, str) and value == str(allowed)):
                return allowed
        raise ConfigError(f"'{key}' must be one of {', '.join(map(str, arguments))}, not '{value}'.")
    if origin is tuple:
        items = [item for item in value.split(",") if item] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)):
            raise _misfit(key, value, kind)
        kinds = [arguments[0]] * len(items) if arguments[1:] == (...,) else arguments
        if len(items) != len(kinds):
            raise ConfigError(f"'{key}' must have {len(kinds)} values, not {len(items)}.")
        return tuple(convert(key, item, item_kind) for item, item_kind in zip(items, kinds, strict=True))
    if kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise _misfit(key, value, kind)
    if kind in (int, float):
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise _misfit(key, value, kind)
        try:
            number = kind(value)
        except (TypeError, ValueError):
            raise _misfit(key, value, kind) from None
        if not math.isfinite(number):
            raise ConfigError(f"'{key}' must be a finite number, not '{value}'.")
        return number
    if kind is str and isinstance(value, str):
        return value
    raise _misfit(key, value, kind)


def _misfit(key: str, value: object, kind: Any) -> ConfigError:
    name = getattr(kind, "__name__", str(kind)).replace("NoneType", "none")
    return ConfigError(f"'{key}' must be of type {name}, not '{value}'.")


def apply_overrides(config: T, overrides: Mapping[str, object], *, prefix: str = "") -> T:
    """A copy of ``config`` with dotted keys replaced; keys must exist and values must fit.

    ``prefix`` is where ``config`` stands in an enclosing one, for messages.
    """
    known = field_types(type(config))
    nested: dict[str, dict[str, object]] = {}
    direct: dict[str, Any] = {}
    for key, value in overrides.items():
        if key not in known:
            raise unknown_key(key, known)
        head, _, rest = key.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[key] = convert(prefix + key, value, known[key])
    for head, inner in nested.items():
        direct[head] = apply_overrides(getattr(config, head), inner, prefix=f"{prefix}{head}.")
    try:
        return typing.cast(T, dataclasses.replace(typing.cast(Any, config), **direct))
    except ValueError as error:  # a config may check its own values
        raise ConfigError(str(error)) from error


def unknown_key(key: str, known: typing.Iterable[str]) -> ConfigError:
    """The error for a key that no config has."""
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    guess = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(sorted(known))}."
    return ConfigError(f"There is no setting '{key}'; {guess}")


def parse_assignment(text: str) -> tuple[str, str]:
    """``key=value`` from the command line."""
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"'{text}' is not of the form key=value.", hint="Example: --set image_size=128")
    return key.strip(), value.strip()


def to_plain(config: Any) -> dict[str, Any]:
    """A config as nested dictionaries and lists for JSON; a field :data:`ADDED_LATER` only where it is set."""
    return {
        field.name: _plain(getattr(config, field.name))
        for field in dataclasses.fields(config)
        if not _added_later(field) or getattr(config, field.name) != field.default
    }


def _added_later(field: dataclasses.Field[Any]) -> bool:
    return ADDED_LATER.items() <= field.metadata.items()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_plain(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def to_settable(config: Any) -> dict[str, Any]:
    """A config as TOML can hold it: given back to :func:`apply_overrides` it makes an equal one.

    TOML has no null: None is the text "none", or left out where that could be meant as a text.
    """
    hints = typing.get_type_hints(type(config))
    table: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            table[field.name] = to_settable(value)
        elif value is not None:
            table[field.name] = _plain(value)
        elif str not in typing.get_args(hints[field.name]):
            table[field.name] = "none"
    return table
