"""An emitted selector, loaded beside others and asked under any legal tuple."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused

NOT_A_SELECTOR: Final = "SEL951"
CALL_REFUSED: Final = "SEL952"
NOTHING: Final = "SEL955"
_numbers = itertools.count()


class NothingLegal(Refused):
    """No assignment of the pins is legal: the answer is no."""

    exit_code = 1


@dataclass(slots=True)
class Selector:
    """One emitted package. The tuple in force is changed by `choice`; use one per thread."""

    directory: Path
    manifest: Mapping[str, Any]
    package: Any
    default: Mapping[str, Any] | None
    """The default tuple, pins and knobs; None where nothing is legal."""

    @classmethod
    def load(cls, directory: Path) -> Selector:
        """Import an emitted selector under a name of its own.

        Raises:
            Refused: the folder holds none.
            NothingLegal: it is of a selection for which no tuple is legal.
        """
        path = directory / "manifest.json"
        try:
            manifest = json.loads(path.read_text("utf-8"))
        except OSError:
            raise _not(directory, "there is no manifest.json in it") from None
        except ValueError as error:
            raise _not(directory, f"its manifest is not JSON: {error}") from None
        if not isinstance(manifest, dict) or "hash" not in manifest or "points" not in manifest:
            raise _not(directory, "its manifest is not one of `selc compile`")
        if manifest.get("tuple") is None:
            raise NothingLegal(
                Diagnostic(
                    NOTHING,
                    f"no tuple of `{manifest.get('family')}` is legal",
                    help=f"`selc legal {directory}` says which guards refuse them",
                )
            )
        name = f"_selc_selector_{next(_numbers)}"
        spec = importlib.util.spec_from_file_location(
            name, directory / "__init__.py", submodule_search_locations=[str(directory)]
        )
        if spec is None or spec.loader is None or not (directory / "__init__.py").exists():
            raise _not(directory, "it has no __init__.py")
        package = importlib.util.module_from_spec(spec)
        sys.modules[name] = package
        try:
            spec.loader.exec_module(package)
        except Exception as error:  # noqa: BLE001  a damaged package may fail in any way
            raise _not(directory, f"it cannot be imported: {error}") from None
        legal = manifest.get("tuple") is not None
        return cls(directory, manifest, package, package.pins() if legal else None)

    @property
    def family(self) -> str:
        """The family that it chooses among."""
        return str(self.manifest["family"])

    @property
    def hash(self) -> str:
        """Its identity: what tuple files and profiles name it by."""
        return str(self.manifest["hash"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """The deployment's facts, nested."""
        facts: Mapping[str, Any] = self.package.FACTS
        return facts

    @property
    def parameters(self) -> Mapping[str, tuple[Any, ...]]:
        """For every pin and free knob the values that some legal tuple gives it, in order."""
        return self.package.legal()  # type: ignore[no-any-return]

    @property
    def examples(self) -> Mapping[str, Any]:
        """The inputs with one admitted value each."""
        return {i["name"]: i["example"] for i in self.manifest["inputs"]}

    @property
    def thresholds(self) -> Mapping[str, Sequence[Any]]:
        """Where the unpinned program changes side, by input."""
        found: Mapping[str, Sequence[Any]] = self.manifest["thresholds"]
        return found

    def legal(self, partial: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]]:
        """What remains for every parameter once some are fixed (nothing: not legal)."""
        return self.package.legal(partial)  # type: ignore[no-any-return]

    def tuples(self) -> Iterator[Mapping[str, Any]]:
        """Every legal tuple, parameter by parameter in the order of `parameters`.

        One at a time: there may be more than fit anywhere.
        """
        names = list(self.parameters)

        def extend(partial: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
            if len(partial) == len(names):
                yield partial
                return
            name = names[len(partial)]
            for value in self.legal(partial)[name]:
                yield from extend({**partial, name: value})

        yield from extend({}) if names else iter([{}])

    def choice(self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The points that a call gets under a tuple, by name.

        Raises:
            Refused: the tuple is not legal, or the call is outside the domain or breaks a guard.
        """
        try:
            if commitment and self.package.pins() != dict(commitment):
                self.package.repin(commitment)
            chosen = self.package.select(**inputs)
        except (self.package.SelectionError, TypeError) as error:
            raise _refused(self.family, inputs, error) from None
        return self.package.points(chosen)  # type: ignore[no-any-return]

    def stock(
        self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the selection takes without any pin, knobs as in a tuple, else in the default one.

        Raises:
            Refused: the call is outside the domain or breaks a guard.
        """
        try:
            knobs = commitment or self.default
            if knobs and self.package.pins() != dict(knobs):
                self.package.repin(knobs)
            chosen = self.package.select_unpinned(**inputs)
        except (self.package.SelectionError, TypeError) as error:
            raise _refused(self.family, inputs, error) from None
        return self.package.points(chosen)  # type: ignore[no-any-return]


def _not(directory: Path, why: str) -> Refused:
    return Refused(
        Diagnostic(
            NOT_A_SELECTOR,
            f"`{directory}` is not an emitted selector: {why}",
            help="make one with `selc compile TARGET --facts F -o DIR`",
        )
    )


def _refused(family: str, inputs: Mapping[str, Any], error: Exception) -> Refused:
    call = ", ".join(f"{k}={v!r}" for k, v in inputs.items())
    return Refused(
        Diagnostic(
            CALL_REFUSED,
            f"the selector of `{family}` refuses the call {call}: {error}",
            help="record the profile with this selector, or remove the call from it",
        )
    )
