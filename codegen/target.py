"""The folder of an emitted package: only ours is replaced, and only as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from selc.diag.diagnostic import Diagnostic, Refused


def install(
    directory: Path, files: Mapping[str, bytes], executable: frozenset[str] = frozenset()
) -> Path:
    """Put a folder with these files in place of `directory`; its absolute path.

    Raises:
        Refused: The folder cannot be written, or holds something that is not an emitted selector.
    """
    directory = directory.absolute()
    check_target(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    except OSError as error:
        raise unwritable(directory, error) from None
    try:
        work.chmod(0o755)
        for name, content in files.items():
            (work / name).write_bytes(content)
            (work / name).chmod(0o755 if name in executable else 0o644)
        replace(work, directory)
    except OSError as error:
        raise unwritable(directory, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return directory


def is_ours(directory: Path) -> bool:
    """Whether a folder is an emitted selector."""
    try:
        data = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and "selc" in data and "hash" in data


def check_target(directory: Path) -> None:
    """Refuse a folder that cannot be imported, or that somebody else filled."""
    if not directory.name.isidentifier():
        raise Refused(
            Diagnostic(
                "SEL909",
                f"{directory.name!r} cannot be imported as a Python package",
                help="choose an output folder whose name is a Python identifier",
            )
        )
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise _foreign(directory, "is not a folder")
    if directory.is_dir() and any(directory.iterdir()) and not is_ours(directory):
        raise _foreign(directory, "holds something that selc did not write")


def _foreign(directory: Path, what: str) -> Refused:
    text = f"the output folder {directory} {what}; it is left as it is"
    return Refused(
        Diagnostic("SEL909", text, help="choose another folder with -o, or empty this one")
    )


def unwritable(directory: Path, error: OSError) -> Refused:
    """What the system said, in our words."""
    text = f"the output folder {directory} cannot be written: {error.strerror or error}"
    return Refused(Diagnostic("SEL909", text, help="choose a folder that you may write, with -o"))


def replace(work: Path, directory: Path) -> None:
    """Put `work` in the place of `directory`; on failure the old folder is back."""
    if not directory.exists():
        work.rename(directory)
        return
    old = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}.old."))
    aside = old / "package"
    directory.rename(aside)
    try:
        work.rename(directory)
    except OSError:
        with contextlib.suppress(OSError):
            aside.rename(directory)
        raise
    finally:
        if os.path.lexists(directory):
            shutil.rmtree(old, ignore_errors=True)
