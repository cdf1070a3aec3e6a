"""Finding modules by dotted name or path, without importing anything.

The order is: the roots, the folder that the target's own package stands in, then the import path
of the running Python. As in Python, a package with `__init__.py` wins over folders without one, and
what has been found first hides the rest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.suggest import did_you_mean
from selc.frontend.source import ModuleSource, read_module

_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_INIT = "__init__.py"


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a dotted name leads: a file, or the folders of a namespace package."""

    file: Path | None
    folders: tuple[Path, ...]


class ModuleFinder:
    """Reads modules on demand, each file once.

    `sources` maps every path read to its digest, and those looked for in vain to `absent`.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(_above_package(root) for root in roots))
        self.sources: dict[str, str] = {}
        self._bases = self.roots
        self._by_name: dict[str, ModuleSource | None] = {}
        self._by_file: dict[Path, ModuleSource] = {}

    def find(self, qualified: str) -> ModuleSource | None:
        """The module or package of a dotted name; None if no source of it is found."""
        if qualified not in self._by_name:
            self._by_name[qualified] = self._find(qualified)
        return self._by_name[qualified]

    def texts(self) -> Iterator[str]:
        """The texts of the modules that have been read; from now on all of them counts."""
        for module in self._by_file.values():
            module.whole = True
            yield module.text

    def followed(self) -> dict[str, Any]:
        """What was read of each file, where that is not all of it."""
        from selc.frontend.followed import trace

        known = ((module.path, trace(module)) for module in self._by_file.values())
        return {path: said for path, said in known if said is not None}

    def split_target(self, target: str) -> tuple[ModuleSource, str | None]:
        """The module and the function that a TARGET names; a missing module is refused (SEL908)."""
        head, separator, function = target.rpartition(":")
        if not separator:
            head, function = target, ""
        elif not _FUNCTION.fullmatch(function):
            if _is_file(Path(target)):
                head, separator, function = target, "", ""
            else:
                raise _refuse(
                    "SEL907",
                    f"what follows the last colon of the target `{target}` is no function's name",
                    "Write `path.py:function`, `path.py:Class.method` or `package.module:name`.",
                )
        if head.endswith(".py") or "/" in head or "\\" in head or _is_file(Path(head)):
            return self._load(head), function or None
        module = self.find(head)
        if module is None or not _is_file(Path(module.path)):
            raise self._missing_module(head)
        return module, function or None

    def resolve_import(self, module: ModuleSource, level: int, name: str | None) -> str:
        """The absolute name that `from <dots><name> import ...` in `module` reads from.

        One that leaves the top package keeps its leading dots, so that it is never found.
        """
        if level == 0:
            return name or ""
        parts = module.package.split(".") if module.package else []
        if level > len(parts):
            return "." * (level - len(parts)) + (name or "")
        kept = parts[: len(parts) - level + 1]
        return ".".join([*kept, name] if name else kept)

    def _find(self, qualified: str) -> ModuleSource | None:
        if not _FUNCTION.fullmatch(qualified):
            return None
        missed: list[Path] = []
        found = _locate(qualified.split("."), (*self._bases, *_import_path()), missed)
        for path in missed:
            self.sources.setdefault(str(path), "absent")
        if found is None:
            return None
        if found.file is None:  # a namespace package has no text of its own
            return ModuleSource(str(found.folders[0]), b"", qualified, is_package=True)
        return self._read(found.file, qualified)

    def _read(self, file: Path, qualified: str) -> ModuleSource:
        key = file.resolve()
        module = self._by_file.get(key)
        if module is None:
            module = read_module(file, qualified, file.name == _INIT)
            self._by_file[key] = module
            self.sources[module.path] = module.digest
        return module

    def _load(self, path: str) -> ModuleSource:
        """The module in a file, under the dotted name that its place gives it."""
        file = next((p for p in self._places(path) if _is_file(p)), None)
        if file is None:
            raise self._missing_file(path)
        base, qualified = self._name_of(file)
        if base not in self._bases:
            self._bases = (*self.roots, base)
            self._by_name.clear()
        module = self._read(file, qualified)
        self._by_name[module.module_name] = module
        return module

    def _places(self, path: str) -> Iterator[Path]:
        yield Path(path)
        for root in self.roots:
            yield root / path

    def _name_of(self, file: Path) -> tuple[Path, str]:
        """The folder that absolute imports start from, and the dotted name from there."""
        absolute = file.absolute()
        base = absolute.parent
        for root in self.roots:
            top = root.absolute()
            if absolute.is_relative_to(top) and _importable(absolute.relative_to(top)):
                inside = [p for p in absolute.parents if p != top and p.is_relative_to(top)]
                packages = [p for p in inside if _is_file(p / _INIT)]
                base = packages[-1].parent if packages else top
                break
        else:
            base = _above_package(base)
        relative = absolute.relative_to(base).with_suffix("")
        parts = relative.parts[:-1] if file.name == _INIT else relative.parts
        return base, ".".join(parts) or file.parent.name

    def _missing_module(self, qualified: str) -> Refused:
        under = ", ".join(f"`{base}`" for base in self._bases)
        places = f"under {under} or " if under else ""
        message = f"the module `{qualified}` is not found {places}among the installed packages"
        parent = self.find(qualified.rpartition(".")[0])
        hint = "Add the folder that contains the package with `--root DIR`."
        if parent is not None:
            folder = Path(parent.path)
            known = _children(folder if _is_dir(folder) else folder.parent)
            hint = _sentence(did_you_mean(qualified.rpartition(".")[2], known)) or (
                f"`{parent.module_name}` is there; correct the name of the module in it."
            )
        return _refuse("SEL908", message, hint)

    def _missing_file(self, path: str) -> Refused:
        if _is_dir(Path(path)):
            return _refuse("SEL908", f"`{path}` is a folder", "Name a Python file in it.")
        places = [str(place) for place in self._places(path)]
        message = f"the file `{places[0]}` does not exist"
        if places[1:]:
            message += f" (nor {', '.join(f'`{place}`' for place in places[1:])})"
        known = [f"{name}.py" for name in _children(Path(path).parent)]
        hint = _sentence(did_you_mean(Path(path).name, known))
        return _refuse("SEL908", message, hint or "Correct the path of the file.")


def _refuse(code: str, message: str, hint: str) -> Refused:
    return Refused(Diagnostic(code, message, help=hint))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _import_path() -> Iterator[Path]:
    """The folders that the running Python imports from (not the working folder)."""
    for entry in sys.path:
        if entry:
            yield Path(entry)


def _is_file(path: Path) -> bool:
    """Whether a file can be seen there; what may not be looked at counts as absent."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _above_package(folder: Path) -> Path:
    """`folder`, or the folder that holds the package that `folder` is in."""
    if _is_file(folder / _INIT):
        folder = folder.absolute()
        while _is_file(folder / _INIT) and folder != folder.parent:
            folder = folder.parent
    return folder


def _importable(relative: Path) -> bool:
    return all(part.isidentifier() for part in relative.with_suffix("").parts)


def _locate(parts: Sequence[str], bases: Sequence[Path], missed: list[Path]) -> _Found | None:
    """Follow a dotted name from the base folders as Python's import system would.

    `missed` receives the files that would have been taken instead.
    """
    found = _Found(None, tuple(bases))
    for index, part in enumerate(parts):
        step = _step(part, found.folders, missed)
        if step is None or (not step.folders and index + 1 < len(parts)):
            return None
        found = step
    return found


def _step(part: str, folders: Sequence[Path], missed: list[Path]) -> _Found | None:
    namespace = []
    for folder in folders:
        package = folder / part
        if _is_file(package / _INIT):
            return _Found(package / _INIT, (package,))
        module = folder / f"{part}.py"
        missed.append(package / _INIT)
        if _is_file(module):
            return _Found(module, ())
        missed.append(module)
        if _is_dir(package):
            namespace.append(package)
    return _Found(None, tuple(namespace)) if namespace else None


def _children(folder: Path) -> list[str]:
    """The modules and packages in a folder, sorted."""
    if not _is_dir(folder):
        return []
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    modules = [p.stem for p in entries if p.suffix == ".py" and p.name != _INIT]
    return modules + [p.name for p in entries if _is_file(p / _INIT)]
