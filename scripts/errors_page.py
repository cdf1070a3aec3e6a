#!/usr/bin/env python3
"""Write docs/errors.md from the registry of codes; `--check` only says whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"

INTRO = """\
# Error codes

Generated from the registry in `selc/diag` by `make docs`; do not edit by hand.
`selc explain CODE` prints the same text, and takes the short name as well.

Exit codes: 0 done, 1 the answer is no (SEL931, SEL932, SEL935, SEL937), 2 the input is wrong or not
supported, 3 an internal error (SEL990). Warnings do not change the exit code.
"""


def page() -> str:
    """The whole page."""
    from selc.diag.rules import all_rules

    rules = all_rules()
    parts = [INTRO, "| code | name | |\n|---|---|---|"]
    for rule in rules:
        anchor = f"{rule.code}-{rule.name}".lower()
        parts[1] += f"\n| [{rule.code}](#{anchor}) | `{rule.name}` | {rule.title} |"
    for rule in rules:
        body = [f"\n## {rule.code} {rule.name}\n\n{rule.title[0].upper()}{rule.title[1:]}."]
        for heading, text in rule.sections:
            if heading == "Example":
                text = f"```{rule.language}\n{text.rstrip()}\n```"
            body.append(f"**{heading}**\n\n{text}")
        parts.append("\n\n".join(body))
    return "\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check the page."""
    text = page()
    if "--check" in arguments:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/errors.md is not current; run `make docs`", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
