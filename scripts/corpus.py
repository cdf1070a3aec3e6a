#!/usr/bin/env python3
"""Fetch the engines whose source the tests read, and unpack them under .corpus/.

The packages are never installed and never imported: they are text. Running the script again does
nothing once both are there. Needs only the standard library and pip.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).resolve().parent.parent / ".corpus"
WHEELS = CORPUS / "wheels"


class Engine(NamedTuple):
    """One release of one engine."""

    requirement: str
    wheel: str
    sha256: str


ENGINES = (
    Engine(
        "vllm-tpu==0.21.0",
        "vllm_tpu-0.21.0-py3-none-any.whl",
        "25cf16e9824a35be897b2afa45488d31cb72ac302ac9e325287da25e8f6577b0",
    ),
    Engine(
        "sglang==0.5.10.post1",
        "sglang-0.5.10.post1-py3-none-any.whl",
        "a854a68b11caf6b4b55c241a44378a7cdede7ede325db85c955f131506703bc6",
    ),
)


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(engine: Engine) -> Path:
    """The wheel of one engine, downloaded unless it lies there with the right contents."""
    wheel = WHEELS / engine.wheel
    if wheel.exists() and digest(wheel) == engine.sha256:
        return wheel
    wheel.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(WHEELS), engine.requirement]
    subprocess.run(command, check=True)
    found = digest(wheel)
    if found != engine.sha256:
        wheel.unlink()
        raise SystemExit(f"{engine.wheel}: SHA-256 is {found}, expected {engine.sha256}")
    return wheel


def unpack(engine: Engine) -> bool:
    """Unpack one engine into .corpus/; whether there was anything to do."""
    stamp = CORPUS / f".{engine.wheel}.unpacked"
    if stamp.exists() and stamp.read_text() == engine.sha256:
        return False
    wheel = fetch(engine)
    with zipfile.ZipFile(wheel) as archive:
        for folder in {name.split("/", 1)[0] for name in archive.namelist()}:
            shutil.rmtree(CORPUS / folder, ignore_errors=True)
        archive.extractall(CORPUS)
    stamp.write_text(engine.sha256)
    return True


def main() -> int:
    """Fetch and unpack everything."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    for engine in ENGINES:
        state = "unpacked" if unpack(engine) else "already there"
        print(f"{engine.requirement}: {state} in {CORPUS.name}/")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"pip download failed (exit code {error.returncode}); its message is above")
