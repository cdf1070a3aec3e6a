"""Options that say how a selection's source is read; `--facts` takes several files in a row."""

from __future__ import annotations

from pathlib import Path

import click

_FACTS_SUFFIXES = (".yaml", ".yml")

facts_option = click.option(
    "--facts",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE...",
    help="Facts files for TARGET; later ones win. May be repeated.",
)

root_option = click.option(
    "--root",
    "roots",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Folder that contains packages to read, before the installed ones. May be repeated.",
)


class SourceCommand(click.Command):
    """Lets `--facts` take several files in a row, as in `--facts device.yaml model.yaml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--facts` before every further YAML file that follows it."""
        return super().parse_args(ctx, spread_facts(args))


def spread_facts(arguments: list[str]) -> list[str]:
    """The same arguments with one `--facts` per file."""
    out: list[str] = []
    previous = ""  # "name": the option's value comes next; "files": further files may follow
    for index, argument in enumerate(arguments):
        if argument == "--":
            return out + arguments[index:]
        if previous == "files" and argument.endswith(_FACTS_SUFFIXES) and argument[0] != "-":
            out.append("--facts")
        elif previous == "name" or argument.startswith("--facts="):
            previous = "files"
        else:
            previous = "name" if argument == "--facts" else ""
        out.append(argument)
    return out
