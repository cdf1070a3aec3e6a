"""The header alone, as C99 and C++17 hosts use it, against the interpreter; sanitized builds."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from selc.codegen.build import FLAGS, build
from selc.codegen.header import Header, make_header
from selc.codegen.routine import pinned
from selc.codegen.spec import Factor, SelectorSpec
from selc.ir.domain import Domain
from selc.ir.op import Op
from selc.ir.value import Value, same
from tests.native.random_selectors import random_maker
from tests.unit.codegen.selectors import Maker, calls, compare, expected, load, write

pytestmark = pytest.mark.native

STOP = ["-fno-sanitize-recover=all"]
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def require(tool: str) -> str:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not on this machine")
    return path


def driver(header: Header) -> str:
    """A program that reads tuples and calls as raw words and writes results as raw words."""
    s = header.symbol
    reads = [f"memcpy(&in.{x.field}, w++, 8);" for x in header.inputs]
    pins = [f"memcpy(&pins.{x.field}, w++, 8);" for x in header.parameters]
    members = [n for o in header.outputs for _, n, _ in o.members]
    writes = [f"memcpy(o++, &out.{n}, 8);" for n in members]
    return f"""
#include "selector.h"
#include <stdlib.h>
int main(void) {{
    static int64_t row[{len(reads) + len(pins)}];
    static int64_t result[{len(members) + 1}];
    struct {s}_in in;
    struct {s}_pins pins;
    struct {s}_out out;
    char message[200];
    memset(&in, 0, sizeof in);
    {s}_default_pins(&pins);
    if ({s}_check_pins(&pins) != 0) return 3;
    while (fread(row, sizeof row, 1, stdin) == 1) {{
        const int64_t *w = row;
        int64_t *o = result;
        {" ".join(pins)}
        {" ".join(reads)}
        memset(&out, 0, sizeof out);
        *o++ = {s}_check_pins(&pins) != 0
            ? -1
            : {s}_select(&in, &pins, &out, message, sizeof message);
        {" ".join(writes)}
        if (fwrite(result, sizeof result, 1, stdout) != 1) return 2;
        if (result[0] > 0 && message[0] == 0) return 4;
    }}
    return 0;
}}
"""


def word(slot, value: Value) -> bytes:
    if slot.encoding == "float":
        return struct.pack("<d", value)
    if slot.encoding == "index":
        return struct.pack("<q", next(i for i, v in enumerate(slot.values) if same(v, value)))
    return struct.pack("<q", int(value))  # type: ignore[call-overload]


def decode(header: Header, row: bytes) -> int | tuple[Value, ...]:
    code = struct.unpack_from("<q", row)[0]
    if code != 0:
        return int(code)
    offset, out = 8, []
    for point in header.outputs:
        got = {}
        for ctype, name, _ in point.members:
            got[name] = struct.unpack_from("<d" if ctype == "double" else "<q", row, offset)[0]
            offset += 8
        tag = got.get(f"{point.field}_kind", point.tags[0] if point.tags else 0)
        number = got.get(point.field)
        real = got.get(f"{point.field}_real", number)
        out.append(decoded(header, int(tag), number, real))
    return tuple(out)


def decoded(header: Header, tag: int, number, real) -> Value:
    if tag == 4:
        return header.constants[int(number)]
    return (None, bool(number), number, real)[tag]


def run_host(
    spec: SelectorSpec, folder: Path, compiler: str, standard: str, flags: list[str]
) -> int:
    header = make_header(spec, pinned(spec), "0" * 64)
    folder.mkdir()
    (folder / "selector.h").write_text(header.text)
    suffix = ".cc" if "++" in standard else ".c"
    source = folder / f"host{suffix}"
    source.write_text(driver(header))
    program = folder / "host"
    command = [
        require(compiler),
        f"-std={standard}",
        *STRICT,
        *flags,
        str(source),
        "-o",
        str(program),
        "-lm",
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    rng = random.Random(3)
    rows: list[bytes] = []
    wanted: list[object] = []
    for args in calls(spec, 2000):
        tuple_now = {n: rng.choice(spec.parameter_values(n)) for n in spec.residual.parameters}
        if any(tuple(tuple_now[p] for p in f.parameters) not in f.rows for f in spec.factors):
            wanted.append(-1)
        else:
            env = dict(zip([a.name for a in spec.arguments], args, strict=True)) | tuple_now
            wanted.append(expected(spec, env))
        row = b"".join(word(s, tuple_now[s.name]) for s in header.parameters)
        rows.append(row + b"".join(word(s, v) for s, v in zip(header.inputs, args, strict=True)))
    done = subprocess.run([str(program)], input=b"".join(rows), capture_output=True)
    assert done.returncode == 0, done.stderr[:3000]
    size = len(done.stdout) // len(rows)
    for k, want in enumerate(wanted):
        got = decode(header, done.stdout[k * size : (k + 1) * size])
        if isinstance(want, tuple):
            assert isinstance(got, tuple), (got, want)
            assert all(same(a, b) for a, b in zip(got, want, strict=True)), (got, want)
        elif want == -1:
            assert got == -1
        else:
            assert isinstance(got, int)
            assert got > 0
    return len(wanted)


HOSTS = {
    "c99": ("gcc", "c99", ["-O2"]),
    "c++17": ("g++", "c++17", ["-O2"]),
    "c99-ubsan": ("gcc", "c99", ["-O1", "-fsanitize=undefined", *STOP]),
    "c99-asan": (
        "gcc",
        "c99",
        ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    ),
    "c99-O0": ("gcc", "c99", ["-O0"]),
    "c99-O3": ("gcc", "c99", ["-O3"]),
}


@pytest.mark.parametrize(
    "host", [pytest.param(h, marks=pytest.mark.slow) if "-O" in h else h for h in HOSTS]
)
def test_hosts_agree_with_the_interpreter(host: str, tmp_path: Path):
    compiler, standard, flags = HOSTS[host]
    for seed in (20, 21):
        spec = random_maker(seed, 50).spec()
        run_host(spec, tmp_path / f"s{seed}", compiler, standard, [*flags, "-ffp-contract=off"])


def test_illegal_and_unchecked_tuples_are_refused(tmp_path: Path):
    maker = Maker({"m": Domain(1, 100)}, {"f.a": (1, 2, 3), "f.b": (None, "x")})
    maker.point("a", lambda g, v: g.add(Op.ADD, v["f.a"], v["m"])).point("b", lambda g, v: v["f.b"])
    maker.factors = (Factor(("f.a", "f.b"), ((1, None), (2, "x")), ()),)
    spec = maker.spec()
    assert run_host(spec, tmp_path / "legal", "gcc", "c99", ["-O1"]) == 100
    header = make_header(spec, pinned(spec), "0" * 64)
    (tmp_path / "selector.h").write_text(header.text)
    (tmp_path / "host.c").write_text("""
#include "selector.h"
int main(void) {
    struct selc_tile_in in;
    struct selc_tile_pins pins;
    struct selc_tile_out out;
    char tiny[8];
    int code;
    memset(&out, 0, sizeof out);
    in.in0 = 5;
    memset(&pins, 0, sizeof pins);
    code = selc_tile_select(&in, &pins, &out, tiny, sizeof tiny);
    if (code == 0 || strlen(tiny) >= sizeof tiny || out.out0 != 0) return 1;
    selc_tile_default_pins(&pins);
    if (selc_tile_select(&in, &pins, &out, NULL, 0) != 0 || out.out0 != 6) return 2;
    pins.p0 = 2;
    if (selc_tile_check_pins(&pins) == 0) return 3;
    if (selc_tile_select(&in, &pins, &out, NULL, 0) == 0) return 4;
    pins.p0 = 99;
    pins.p1 = -7;
    return selc_tile_check_pins(&pins) == 0 ? 5 : 0;
}
""")
    program = tmp_path / "host"
    command = [
        require("gcc"),
        "-std=c99",
        *STRICT,
        str(tmp_path / "host.c"),
        "-o",
        str(program),
        "-lm",
    ]
    subprocess.run(command, check=True)
    assert subprocess.run([str(program)]).returncode == 0


@pytest.mark.parametrize("seed", [31, 32])
def test_the_module_builds_without_a_warning_and_under_the_sanitizer(seed: int, tmp_path: Path):
    spec = random_maker(seed, 50).spec()
    package = write(spec, tmp_path)
    for extra in (
        ("-Wall", "-Wextra", "-Werror"),
        ("-fsanitize=undefined", "-fno-sanitize-recover=all"),
    ):
        target = package / "_native.abi3.so"
        target.unlink()
        build(package / "_native.c", target, extra)
        assert load(package).NATIVE
        # a sanitized module ends the process on the first overflow, so that agreement is proof
        assert compare(spec, package, 400) >= 400


def test_no_flag_changes_what_floats_mean():
    assert "-ffp-contract=off" in FLAGS
    assert not any("fast-math" in f for f in FLAGS)
