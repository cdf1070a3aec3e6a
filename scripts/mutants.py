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


def found(mutant: Mutant, folder: Path) -> bool:
    """Whether the checker finds that something is wrong."""
    try:
        return any(f.result == "failed" for f in examine(mutant.manifest, folder, run=False))
    except Unreadable:
        return True


def main(folders: list[str]) -> None:
    """Print the table and the survivors."""
    made: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    survivors = []
    for name in folders:
        folder = Path(name)
        for mutant in mutants(json.loads((folder / "manifest.json").read_text())):
            made[mutant.kind] += 1
            if not found(mutant, folder):
                missed[mutant.kind] += 1
                survivors.append(f"{folder.name}: {mutant.kind}: {mutant.what.strip()}")
    print("| kind | mutants | accepted |\n|---|---|---|")
    for kind in sorted(made):
        print(f"| {kind} | {made[kind]} | {missed[kind] or ''} |")
    print(f"| **all** | {sum(made.values())} | {sum(missed.values())} |")
    print(*survivors, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
