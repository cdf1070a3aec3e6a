"""What the user sees of a mistake inside selc: a short message and a file to report it with."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from selc import __version__

EXIT_CODE = 3


def report(error: Exception, arguments: Sequence[str]) -> int:
    """Write the dump and the message; the exit code."""
    import traceback

    trace = "".join(traceback.format_exception(error))
    summary = traceback.format_exception_only(error)[-1].strip().splitlines()[0][:300]
    click.echo(f"selc: internal error [SEL990]: {summary}", err=True)
    path = _dump(trace, arguments)
    if path:
        click.echo(f"  = help: this is a mistake in selc; please report it with {path}", err=True)
    else:
        click.echo("  = help: please report it; SELC_DEBUG=1 prints the details", err=True)
    if os.environ.get("SELC_DEBUG") == "1":
        click.echo(trace, err=True)
    return EXIT_CODE


def _dump(trace: str, arguments: Sequence[str]) -> str:
    """Path of a new file with all that a report needs; empty if none could be written."""
    import platform
    import shlex
    import tempfile

    lines = [
        f"selc {__version__}",
        f"python {sys.version.split()[0]} on {platform.platform()}",
        f"command: selc {shlex.join(arguments)}",
        "",
        trace,
    ]
    try:
        handle, path = tempfile.mkstemp(prefix="selc-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
    except OSError:
        return ""
    return path
