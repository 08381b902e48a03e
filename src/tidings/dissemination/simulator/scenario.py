"""A scenario, a TOML file that says what is simulated: network, caches, losses, workload and schemes; or network and events.

Every setting has a default. `[sweep]` names one setting and its values; each value is a run of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tidings.dissemination.schemes import SCHEMES as TABLE_1
from tidings.dissemination.schemes.long_semijoins import RefSJFull, RefSJFullPlus
from tidings.dissemination.schemes.scheme import Scheme
from tidings.dissemination.simulator.event_workload import Events
from tidings.dissemination.simulator.simulation import Caches, Loss
from tidings.dissemination.simulator.workload import Workload
from tidings.errors import TidingsError, did_you_mean

LONG: dict[str, type[Scheme]] = {scheme.name: scheme for scheme in (RefSJFull, RefSJFullPlus)}
SCHEMES = TABLE_1 | LONG


class ScenarioError(TidingsError):
    """A scenario cannot be read or run; the sentence names the key."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """`kind` is "can" (a content-addressable network) or "tree" (forwarding tables); without routers there are no delays."""

    kind: str = "can"
    nodes: int = 100
    routers: int = 0
    churn: int = 0
    """A node leaves and one joins every so many changes or events; 0: never."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    schemes: tuple[str, ...] = ("Enum-SJ", "Rel-Sel", "Ref-J+", "Ref-SJ-Clu+")
    network: Overlay = field(default_factory=Overlay)
    workload: Workload = field(default_factory=Workload)
    caches: Caches | None = None
    loss: Loss = field(default_factory=Loss)
    events: Events | None = None
    """If there are any, the network carries them to filters and patterns, and no joins to schemes."""
    sweep: tuple[str, tuple[Any, ...]] | None = None

    def __post_init__(self) -> None:
        if self.events is None:
            for name in LONG.keys() & set(self.schemes) if self.network.kind == "can" else ():
                raise ScenarioError(
                    f"'schemes' names {name!r}, which needs a network whose 'kind' is \"tree\"; "
                    "its messages are for more than regions, by which a content-addressable network routes"
                )
            return
        if self.network.kind != "tree":
            raise ScenarioError(f"'network.kind' is {self.network.kind!r}; events need the kind \"tree\"")
        for key, is_set in (
            ("caches", self.caches is not None),
            ("loss", self.loss != Loss()),
        ):
            if is_set:
                raise ScenarioError(f"'{key}' is for joins; leave it out where there are [events]")

    def runs(self) -> list[tuple[Any, Scenario]]:
        """Each value of the sweep with its scenario; one run without a value if nothing is swept."""
        if self.sweep is None:
            return [(None, self)]
        key, values = self.sweep
        section, name = key.split(".")
        part: Any = getattr(self, section) or _SECTIONS[section]()
        found = []
        for value in values:
            changed: Any = {section: replace(part, **{name: value})}
            found.append((value, replace(self, sweep=None, **changed)))
        return found


def read(path: Path) -> Scenario:
    """The scenario of a TOML file; ScenarioError names the key that is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is no TOML: {error}") from None
    return scenario_of(content)


_SECTIONS: dict[str, type[Any]] = {
    "network": Overlay,
    "workload": Workload,
    "caches": Caches,
    "loss": Loss,
    "events": Events,
}
_LIMITS: dict[str, tuple[float, float]] = {
    "network.nodes": (1, 100_000),
    "network.routers": (0, 1_000_000),
    "workload.tables": (2, 3),
    "workload.t_rows": (1, 10_000_000),
    "workload.subscriptions": (1, 10_000_000),
    "workload.r_rows": (1, 10_000_000),
    "workload.s_rows": (1, 10_000_000),
    "workload.join_values": (1, 1_000_000),
    "workload.changes": (1, 100_000_000),
    "events.subscriptions": (1, 1_000_000),
    "events.topics": (1, 1_000_000),
    "events.patterns": (0, 1),
    "events.payload": (0, 10_000_000),
    "events.events": (1, 100_000_000),
    "caches.share": (0, 1),
    "loss.packet": (0, 0.9),
    "loss.acknowledgment": (0, 1),
}


def scenario_of(content: Mapping[str, Any]) -> Scenario:
    _known(content, [*_SECTIONS, "schemes", "sweep"], "")
    for name in ("schemes", "workload"):
        if "events" in content and name in content:
            raise ScenarioError(f"'{name}' is for joins; leave it out where there are [events]")
    parts = {name: _section(name, content[name]) for name in _SECTIONS if name in content}
    schemes = content.get("schemes", list(Scenario().schemes))
    if not isinstance(schemes, list) or not schemes:
        raise ScenarioError(f"'schemes' is {schemes!r}; it needs a list of names such as [\"Ref-SJ-Clu+\"]")
    for name in schemes:
        if name not in SCHEMES:
            advice = did_you_mean(str(name), SCHEMES, f"the schemes are {', '.join(SCHEMES)}")
            raise ScenarioError(f"'schemes' names {name!r}, which is none; {advice}")
    scenario = Scenario(schemes=tuple(dict.fromkeys(schemes)), **parts)
    return replace(scenario, sweep=_sweep(content["sweep"])) if "sweep" in content else scenario


def _section(section: str, given: Any) -> Any:
    kind = _SECTIONS[section]
    if not isinstance(given, dict):
        raise ScenarioError(f"'{section}' is {given!r}; it needs a section [{section}] of settings")
    _known(given, [setting.name for setting in fields(kind)], f"{section}.")
    return kind(**{name: _checked(f"{section}.{name}", value) for name, value in given.items()})


def _checked(key: str, value: Any) -> Any:
    section, name = key.split(".")
    default = getattr(_SECTIONS[section](), name)
    if key == "network.kind":
        if value not in ("can", "tree"):
            raise ScenarioError(f'\'{key}\' is {value!r}; it needs "can" or "tree"')
        return value
    wanted = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(default, bool)):
        words = {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]
        raise ScenarioError(f"'{key}' is {value!r}; it needs {words}, such as {str(default).lower()}")
    least, most = _LIMITS.get(key, (0, 2**62))
    if not least <= value <= most:
        raise ScenarioError(f"'{key}' is {value!r}; it needs a number from {least:,} to {most:,}")
    return value


def _sweep(given: Any) -> tuple[str, tuple[Any, ...]]:
    keys = [f"{section}.{setting.name}" for section, kind in _SECTIONS.items() for setting in fields(kind)]
    if not isinstance(given, dict) or len(given) != 1:
        raise ScenarioError(
            "'sweep' needs one setting and its values, such as \"caches.repository\" = [0, 400]"
        )
    ((key, values),) = given.items()
    _known(given, keys, "sweep.")
    if not isinstance(values, list) or not values:
        raise ScenarioError(f"'sweep.{key}' is {values!r}; it needs a list of values")
    return key, tuple(_checked(key, value) for value in values)


def _known(given: Iterable[str], names: list[str], where: str) -> None:
    for name in given:
        if name not in names:
            advice = did_you_mean(name, names, f"there are {', '.join(names)}")
            raise ScenarioError(f"there is no setting '{where}{name}'; {advice}")
