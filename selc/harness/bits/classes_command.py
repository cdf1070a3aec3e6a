"""`selc bits --classes`: from its options to a partition file, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.diag.outcome import Outcome
from selc.diag.table import listing, table
from selc.harness.bits import configurations
from selc.harness.bits.battery import Battery
from selc.harness.bits.classes import Case, Found, Refinement
from selc.harness.bits.command import BitsOptions, commitment
from selc.harness.bits.configurations import Member, Shape
from selc.harness.bits.launch import Launcher
from selc.harness.bits.limits import call_of, size_check
from selc.harness.bits.partition import partition, write
from selc.harness.call import Call, inputs_of
from selc.harness.device import Device
from selc.harness.selector import Selector
from selc.harness.setup import settings_of, setup, usage

FORMAT: Final = 1
WIDTH: Final = 100
MOST: Final = 20
"""Configurations that a text answer lists for each reason."""


@dataclass(frozen=True, slots=True)
class ClassesOptions:
    """What the command was given, besides what batteries take."""

    bits: BitsOptions
    fields: tuple[str, ...] = ()
    configs: Path | None = None
    given: tuple[str, ...] = ()
    seeds: int = 2
    magnitudes: bool = False
    profiles: tuple[Path, ...] = ()


def run(options: ClassesOptions) -> Outcome:
    """Compare configurations and write the partition; exit 1 if there is no class.

    Raises:
        Refused: something that was given is wrong, or nothing can be compared.
    """
    bits = options.bits
    if len(bits.directories) != 1:
        raise usage("`--classes` is for one selector", "name one folder")
    if bits.out is None:
        raise usage("`--classes` needs a file to write", "give it with `-o classes.json`")
    if options.seeds < 1:
        raise usage("`--seeds` has to be at least 1")
    (family,) = setup(bits.directories, bits.kernels, options.profiles, (), bits.settings).values()
    device = Device.open(bits.device)
    selector, kernels = family.selector, family.kernels
    tuple_ = commitment(selector, bits)
    fields = configurations.fields_of(selector, kernels, options.fields)
    extra = settings_of(bits.settings)
    battery = Battery(selector, kernels, device, tuple_, extra, bits.quick)
    calls = _fitting(battery, [call for call, _ in family.calls])
    shapes = configurations.shapes_of(
        battery.cells(), calls, bits.quick, lambda batch: inputs_of(batch, selector.examples)
    )
    cases = _cases(selector, tuple_, shapes, extra, options)
    if not cases:
        raise usage("the tuple admits none of the batches", "test another with `--tuple`")
    bases = [case.base for case in cases]
    given = configurations.given_of(selector, kernels, fields, settings_of(options.given), bases)
    if options.configs is not None:
        members = configurations.from_file(options.configs, fields)
    else:
        inputs = [case.shape.inputs for case in cases]
        members = configurations.from_selector(selector, fields, _distinct(inputs))
    launcher = Launcher(kernels, device.kind)

    def progress(done: int, total: int) -> None:
        if bits.progress is not None:
            bits.progress(selector.family, done, total)

    refinement = Refinement(launcher, fields, given, members)
    found = refinement.run(cases, bits.budget, progress)
    about = device.describe()
    bound = {
        "device": device.name,
        "kernel": family.digest,
        "versions": {"torch": about["torch"], "triton": about["triton"]},
    }
    content = partition(selector.family, fields, given, found, bound)
    if found.classes:
        write(bits.out, content)
    return _outcome(content, found, members, bits.out)


def _cases(
    selector: Selector,
    tuple_: Mapping[str, Any],
    shapes: Sequence[Shape],
    extra: Mapping[str, Any],
    options: ClassesOptions,
) -> list[Case]:
    """Every shape with every seed and magnitude that the tuple admits."""
    out = []
    for seed in range(options.seeds):
        for magnitude in ("normal", "extreme") if options.magnitudes else ("normal",):
            how = {"magnitude": magnitude} if options.magnitudes else {}
            for plain in shapes:
                shape = plain.round(seed)
                more = {**shape.extra, **extra, **how}
                alone = call_of(selector, [shape.alone], more, {})
                call = Call(selector.family, shape.inputs, selector.facts, shape.batch, more)
                try:
                    base = selector.choice(tuple_, call.inputs)
                    alone_base = selector.choice(tuple_, alone.inputs)
                except Refused:
                    continue
                out.append(Case(shape, seed, magnitude, call, alone, base, alone_base))
    return out


def _fitting(battery: Battery, calls: Sequence[Call]) -> list[Call]:
    device = battery.device
    fits = size_check(
        battery.selector, battery.kernels, device.kind, battery.extra, device.memory_bytes
    )
    return [call for call in calls if not fits(call.requests)]


def _distinct(inputs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({repr(sorted(i.items())): i for i in inputs}.values())


def _outcome(
    content: Mapping[str, Any], found: Found, members: Sequence[Member], out: Path
) -> Outcome:
    classes = content["classes"]
    answer = {
        "format": FORMAT,
        "family": content["family"],
        "fields": content["fields"],
        "given": content["given"],
        "device": content["device"],
        "kernel": content["kernel"],
        "dtype": content["dtype"],
        "written": str(out) if classes else None,
        "configurations": len(members),
        "classes": [{k: c[k] for k in ("name", "members")} for c in classes],
        "left_out": [[list(m), why] for m, why in found.left_out.values()],
        "in_no_class": [[list(m), why] for m, why in found.unfit.values()],
        "cases": len(found.tried),
        "cases_dropped": found.dropped,
        "cases_late": found.late,
        "seeds": sorted({c.seed for c in found.tried}),
        "magnitudes": sorted({c.magnitude for c in found.tried}),
        "launches": found.launches,
        "comparisons": found.comparisons,
    }
    return Outcome(0 if classes else 1, "\n".join(_text(answer)), answer)


def _text(answer: Mapping[str, Any]) -> list[str]:
    fields = ", ".join(answer["fields"])
    at = ", ".join(f"{k}={v!r}" for k, v in answer["given"].items())
    out = [
        f"{answer['family']} on {answer['device']}, {answer['dtype']}: "
        f"{answer['configurations']} configurations of {fields}" + (f" at {at}" if at else ""),
        f"tried in {answer['cases']} launches each: seeds {listing(_texts(answer['seeds']), 8)}, "
        f"magnitudes {', '.join(answer['magnitudes'])}; {answer['comparisons']} comparisons",
        "",
    ]
    rows = [
        [c["name"], str(len(c["members"])), listing([_shown(m) for m in c["members"]], 6)]
        for c in answer["classes"]
    ]
    out += table(["class", "size", "configurations"], rows, WIDTH)
    for title, key in (("left out", "left_out"), ("in no class", "in_no_class")):
        if answer[key]:
            out += ["", f"{title} ({len(answer[key])})"]
            rows = [[_shown(m), why] for m, why in answer[key][:MOST]]
            out += table(["configuration", "why"], rows, WIDTH)
    if answer["cases_dropped"]:
        out += ["", f"{len(answer['cases_dropped'])} launches that no configuration could make"]
        rows = [[case, why] for case, why in list(answer["cases_dropped"].items())[:MOST]]
        out += table(["launch", "why"], rows, WIDTH)
    if answer["cases_late"]:
        out += ["", f"{answer['cases_late']} launches were not tried: the budget is spent"]
    out.append("")
    if not answer["classes"]:
        return [*out, "no class, and nothing was written"]
    out.append("Equal bits were seen, not proved: launches that were not tried may part a class.")
    return [*out, f"written  {answer['written']}"]


def _shown(member: Sequence[Any]) -> str:
    return "(" + ", ".join(map(str, member)) + ")"


def _texts(values: Sequence[Any]) -> list[str]:
    return [str(v) for v in values]
