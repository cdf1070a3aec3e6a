"""From a command's arguments to selectors, kernels and the calls of a workload."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.harness.call import Call, requests_of
from selc.harness.protocol import OURS, digest_of, load_kernels, no_kernels
from selc.harness.selector import Selector
from selc.harness.workload import Workload, read

USAGE: Final = "SEL909"
OTHER_SELECTOR: Final = "SEL951"
NOTHING: Final = "SEL955"
MAX_ERRORS: Final = 5


@dataclass(frozen=True, slots=True)
class Family:
    """A family as a command works on it."""

    selector: Selector
    kernels: Any
    name: str
    """What `load_kernels` makes the kernels of: they are loaded by it in another process."""
    calls: tuple[tuple[Call, float], ...]
    """The workload's distinct calls with their weighted counts; the most frequent first."""

    @property
    def digest(self) -> str:
        """Changes when the kernels do."""
        return digest_of(self.kernels)


def setup(
    directories: Sequence[Path],
    kernels: Sequence[str] = (),
    profiles: Sequence[Path] = (),
    weights: Sequence[float] = (),
    settings: Sequence[str] = (),
) -> dict[str, Family]:
    """The families of some emitted selectors, by name, with the calls of the profiles together.

    `kernels` are `family=module:object`, or `module:object` in the order of the directories; a
    family that has none gets ours of that name. `settings` are `NAME=VALUE` for `Call.extra`.
    Without profiles there are no calls.

    Raises:
        Refused: anything of it is wrong.
    """
    selectors = [Selector.load(d) for d in directories]
    names = kernels_of([s.family for s in selectors], kernels)
    values = settings_of(settings)
    check_weights(profiles, weights)
    workload = read(profiles, weights)
    out: dict[str, Family] = {}
    for selector in selectors:
        if selector.family in out:
            raise usage(f"two selectors are of the family `{selector.family}`")
        name = names[selector.family]
        calls = calls_of(selector, workload, values) if profiles else ()
        if profiles and not calls:
            raise Refused(Diagnostic(NOTHING, f"the profile has no call of `{selector.family}`"))
        out[selector.family] = Family(selector, load_kernels(name), name, calls)
    return out


def kernels_of(families: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """The name of each family's kernels.

    Raises:
        Refused: a family has none, or a name belongs to no family.
    """
    named = dict(g.split("=", 1) for g in given if "=" in g)
    odd = sorted(set(named) - set(families))
    if odd:
        raise no_kernels(f"no selector is of the family `{odd[0]}`", "; ".join(families))
    ordered = [g for g in given if "=" not in g]
    rest = [f for f in families if f not in named]
    if len(ordered) > len(rest):
        raise no_kernels(f"there are more kernels than selectors: `{ordered[len(rest)]}`")
    named |= dict(zip(rest, ordered, strict=False))
    for family in families:
        if family in named:
            continue
        if family not in OURS:
            raise no_kernels(
                f"no kernels are named for `{family}`",
                f"give them with `--kernels {family}=module:object`",
            )
        named[family] = family
    return named


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE`s as a mapping; values are JSON, or else text.

    Raises:
        Refused: one has no name or no value.
    """
    out: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise usage(f"`--set {each}` is not NAME=VALUE", "as in `--set page_size=16`")
        try:
            out[name] = json.loads(value)
        except ValueError:
            out[name] = value
    return out


def calls_of(
    selector: Selector, workload: Workload, settings: Mapping[str, Any] | None = None
) -> tuple[tuple[Call, float], ...]:
    """A workload's calls of a selector's family, each asked of the selector once.

    Raises:
        Refused: the profile is of another selector, or a call is refused.
    """
    found: dict[str, tuple[Call, float]] = {}
    trouble: list[Diagnostic] = []
    for (family, owner, body), count in workload.calls.items():
        if family != selector.family or len(trouble) >= MAX_ERRORS:
            continue
        if owner not in ("", selector.hash):
            raise _other(selector, owner)
        data = json.loads(body)
        call = call_of(selector, data["inputs"], {**data["extra"], **(settings or {})})
        try:
            if selector.default is not None:
                selector.choice(selector.default, call.inputs)
        except Refused as refused:
            trouble += refused.diagnostics
        before = found.get(call.key, (call, 0.0))[1]
        found[call.key] = (call, before + count)
    if trouble:
        raise Refused(*trouble)
    return tuple(sorted(found.values(), key=lambda each: (-each[1], each[0].key)))


def call_of(selector: Selector, inputs: Mapping[str, Any], extra: Mapping[str, Any]) -> Call:
    """One call of a selector's family."""
    requests = requests_of(inputs, extra)
    return Call(selector.family, inputs, selector.facts, requests, extra)


def check_weights(profiles: Sequence[Path], weights: Sequence[float]) -> None:
    """Refuse weights that are not positive, or not one for each profile."""
    if weights and len(weights) != len(profiles):
        raise usage(f"{len(weights)} weights for {len(profiles)} profiles")
    if any(not 0 < w < float("inf") for w in weights):
        raise usage("a weight is not positive", "give each profile a weight above 0")


def usage(message: str, hint: str = "") -> Refused:
    """An error in the command's own arguments."""
    return Refused(Diagnostic(USAGE, message, help=hint))


def _other(selector: Selector, owner: str) -> Refused:
    return Refused(
        Diagnostic(
            OTHER_SELECTOR,
            f"the profile was recorded with another selector of `{selector.family}`: {owner}, "
            f"and `{selector.directory}` is {selector.hash}",
            help="record it anew with this selector",
        )
    )
