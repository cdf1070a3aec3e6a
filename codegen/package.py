"""Writing an emitted package: the files are made beside the target, which is then replaced."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from selc.codegen.build import SUFFIX, BuildError, Cache, build, native_key
from selc.codegen.cvalue import Unsupported
from selc.codegen.header import Header, make_header
from selc.codegen.manifest import describe, finished, selector_hash
from selc.codegen.module import (
    NativeTables,
    init_module,
    python_module,
    relation_module,
    unpinned_module,
)
from selc.codegen.names import point_path
from selc.codegen.native import module_key, native_text
from selc.codegen.py import Constants, PythonBody
from selc.codegen.routine import pinned, unpinned
from selc.codegen.spec import Artifacts, SelectorSpec
from selc.codegen.stub import package_stub, stub_text
from selc.codegen.target import check_target, install, replace, unwritable
from selc.codegen.tree import shape_of
from selc.diag.diagnostic import Diagnostic, Severity, Sink

RUNTIME: Final = (
    "_constants.py",
    "_files.py",
    "_record.py",
    "_runtime.py",
    "_surface.py",
    "_tuples.py",
)


def emit(
    spec: SelectorSpec,
    directory: Path,
    emit: frozenset[str],
    native: bool,
    sink: Sink,
    cache: Cache | None = None,
) -> Artifacts:
    """Write the package of a selector to `directory`, replacing an older one of ours.

    The Python modules and the manifest are always written. `emit` may ask for `native`, `header`
    and the texts that `spec.texts` holds. A native module that cannot be is a warning.

    Raises:
        Refused: The folder cannot be written, or holds something that is not an emitted selector.
    """
    directory = directory.absolute()
    check_target(directory)
    manifest = describe(spec)
    digest = selector_hash(manifest)
    header, reason = _header(spec, digest, sink, native and bool(emit & {"native", "header"}))
    files = dict(spec.texts)
    if header is not None and emit & {"native", "header"}:
        files["selector.h"] = header.text
    c_text = (
        native_text(spec, header) if header is not None and native and "native" in emit else None
    )
    if c_text is not None:
        files["_native.c"] = c_text
    elif reason is None:
        reason = "not asked for"
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
        work.chmod(0o755)
    except OSError as error:
        raise unwritable(directory, error) from None
    try:
        for name, text in files.items():
            (work / name).write_text(text, encoding="utf-8")
        built = False
        if c_text is not None:
            reason = _build_native(work, c_text, sink, cache)
            built = reason is None
        _write_python(spec, work, digest, header if built else None, c_text if built else None)
        info = {"available": built, "reason": reason, "symbol": header.symbol if header else None}
        _write_manifest(work, manifest, digest, info)
        replace(work, directory)
    except OSError as error:
        raise unwritable(directory, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return _artifacts(directory, digest, reason)


def emit_manifest(spec: SelectorSpec, directory: Path) -> Artifacts:
    """Write the manifest alone: the folder says what was found, and nothing of it can be imported.

    Raises:
        Refused: The folder cannot be written, or holds something that is not an emitted selector.
    """
    manifest = describe(spec)
    digest = selector_hash(manifest)
    info = {"available": False, "reason": "no selector was emitted", "symbol": None}
    files = {name: text.encode() for name, text in spec.texts.items()}
    files["manifest.json"] = finished(manifest, digest, info, files).encode()
    return _artifacts(install(directory, files), digest, "no selector was emitted")


def _header(
    spec: SelectorSpec, digest: str, sink: Sink, wanted: bool
) -> tuple[Header | None, str | None]:
    try:
        return make_header(spec, pinned(spec), digest), None
    except Unsupported as refusal:
        if wanted:
            sink.add(
                Diagnostic(
                    "SEL940",
                    f"the native selector was not built: {refusal}",
                    severity=Severity.WARNING,
                    help="the Python selector is complete; --no-native asks for it alone",
                )
            )
        return None, str(refusal)


def _build_native(work: Path, c_text: str, sink: Sink, cache: Cache | None) -> str | None:
    """Build the module; the reason if it cannot be."""
    target = work / SUFFIX
    failure: list[str] = []

    def make() -> bytes | None:
        try:
            build(work / "_native.c", target)
        except BuildError as error:
            failure.append(str(error))
            return None
        return target.read_bytes()

    key = native_key(c_text + (work / "selector.h").read_text("utf-8"))
    content = make() if cache is None else cache(key, make)
    if content is not None:
        target.write_bytes(content)
        target.chmod(0o755)
        return None
    reason = failure[0] if failure else "the build cache has no module"
    sink.add(
        Diagnostic(
            "SEL940",
            f"the native selector was not built: {reason}",
            severity=Severity.WARNING,
            help="install a C compiler with the Python headers, set CC, or pass --no-native",
        )
    )
    return reason


def _write_python(
    spec: SelectorSpec, work: Path, digest: str, header: Header | None, c_text: str | None
) -> None:
    bodies = (PythonBody(pinned(spec), Constants()), PythonBody(unpinned(spec), Constants()))
    paths = [spec.paths.get(p.name) or point_path(p.name) for p, _ in spec.residual.points]
    tables = NativeTables(None)
    if header is not None and c_text is not None:
        indexed = tuple(s.encoding == "index" for s in header.parameters)
        tables = NativeTables(module_key(c_text), header.constants, indexed)
    shape = shape_of(paths)
    texts = {
        "__init__.py": init_module(spec, digest),
        "__init__.pyi": package_stub(spec, digest),
        "selector.pyi": stub_text(spec, bodies, shape, digest),
        "_python.py": python_module(spec, bodies, shape, digest, tables),
        "_unpinned.py": unpinned_module(spec, bodies[1], digest),
        "_relation.py": relation_module(spec, digest),
        "py.typed": "",
    }
    folder = resources.files("selc.codegen.rt")
    for name in RUNTIME:
        texts[name] = folder.joinpath(name).read_text("utf-8")
    for name, text in texts.items():
        (work / name).write_text(text, encoding="utf-8")


def _write_manifest(
    work: Path, manifest: dict[str, object], digest: str, info: Mapping[str, object]
) -> None:
    contents = {p.name: p.read_bytes() for p in work.iterdir() if p.is_file()}
    (work / "manifest.json").write_text(
        finished(manifest, digest, info, contents), encoding="utf-8"
    )


def _artifacts(directory: Path, digest: str, reason: str | None) -> Artifacts:
    def there(name: str) -> str | None:
        path = directory / name
        return str(path) if path.exists() else None

    return Artifacts(
        directory=str(directory),
        module=directory.name,
        manifest=str(directory / "manifest.json"),
        native=there(SUFFIX),
        header=there("selector.h"),
        reason=reason,
        hash=digest,
        files=tuple(sorted(p.name for p in directory.iterdir() if p.is_file())),
    )
