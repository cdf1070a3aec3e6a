"""Counts how many mutants of certificates the checker finds, by kind.

    python scripts/mutants.py FOLDER...

Each FOLDER holds an emitted selector. Survivors are listed with the line that was changed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from selc.check.examine import examine
from selc.check.values import Unreadable
from tests.check.mutants import Mutant, mutants
from tests.check.same import same_function


def found(mutant: Mutant, folder: Path, run: bool) -> bool:
    """Whether the checker finds that something is wrong; `run`: it also runs the package."""
    try:
        return any(f.result == "failed" for f in examine(mutant.manifest, folder, run))
    except Unreadable:
        return True


def main(folders: list[str]) -> None:
    """Print the table and the survivors."""
    made: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    survivors = []
    for name in folders:
        folder = Path(name)
        manifest = json.loads((folder / "manifest.json").read_text())
        for mutant in mutants(manifest):
            made[mutant.kind] += 1
            graph = mutant.kind.split(":")[0]
            if found(mutant, folder, False):
                continue
            if graph in ("graph", "graph0") and same_function(manifest, mutant.manifest, graph):
                equal[mutant.kind] += 1
            elif not found(mutant, folder, True):
                missed[mutant.kind] += 1
                survivors.append(f"{folder.name}: {mutant.kind}: {mutant.what.strip()}")
    print("| kind | mutants | the same function | accepted otherwise |\n|---|---|---|---|")
    for kind in sorted(made):
        print(f"| {kind} | {made[kind]} | {equal[kind] or ''} | {missed[kind] or ''} |")
    total = f"{sum(made.values())} | {sum(equal.values())} | {sum(missed.values())}"
    print(f"| **all** | {total} |")
    print(*survivors, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
