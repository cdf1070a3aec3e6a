"""docs/cli.md names every command and option that there is, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from selc.cli import app
from selc.driver.options import ARTIFACTS
from selc.passes.names import PASS_NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
TEXT = PAGE.read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    parts = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0]: part for part in parts}


def options(command: click.Command) -> Iterator[str]:
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    for each in commands:
        for parameter in each.params:
            if isinstance(parameter, click.Option):
                yield from (name for name in parameter.opts if name not in ("-h", "--help"))


def test_every_command_has_a_section() -> None:
    named = {title.split()[1] for title in sections() if title.startswith("selc ")}
    assert named == set(app.commands)


def test_every_option_is_named_and_no_other() -> None:
    for title, text in sections().items():
        if title.startswith("selc "):
            command = app.commands[title.split()[1]]
            rows = "\n".join(
                row.split(" | ")[0] for row in text.splitlines() if row.startswith("| `-")
            )
            assert set(re.findall(r"`?(--?[a-z-]+)", rows)) == set(options(command)), title


def test_artifacts_and_passes() -> None:
    for name in (*PASS_NAMES, *ARTIFACTS):
        assert f"`{name}`" in TEXT
