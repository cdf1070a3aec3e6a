"""FlashAttention-3's tile tables: which tile of queries and keys a kernel works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selc.lang import record

if TYPE_CHECKING:
    from fa3_inputs import Build, Device, Model

HEAD_DIMS = (64, 96, 128, 192, 256)
VALUE_DIMS = (64, 96, 128, 192, 256, 512)


@record
class Shape:
    """What every look-up of a tile reads of a deployment."""

    fork: bool
    arch: int
    bytes: int  # of an element
    asked_d: int  # head dimensions as the model has them
    asked_dv: int
    d: int  # and rounded
    dv: int
    softcap: bool
    two_level: bool  # the fork's accumulation in fp8


@record
class Tile:
    """A tile of SM90: kBlockM, kBlockN, MmaPV_is_RS, IntraWGOverlap."""

    m: int
    n: int
    rs: bool
    overlap: bool


@record
class OldTile:
    """A tile of SM80, SM86 or SM89."""

    m: int
    n: int
    warps: int
    stages: int
    q_in_regs: bool


def shape_of(device: Device, model: Model, build: Build, fork: bool) -> Shape:
    """The shape that the heuristics look tiles up with."""
    d = model.head_dim
    dv = d if model.head_dim_v is None else model.head_dim_v
    return Shape(
        fork=fork,
        arch=device.capability,
        bytes=1 if model.dtype == "e4m3" else 2,
        asked_d=d,
        asked_dv=dv,
        d=rounded(d, HEAD_DIMS, build),
        dv=rounded(dv, HEAD_DIMS if dv == d else VALUE_DIMS, build),
        softcap=model.softcap > 0.0,
        two_level=not build.disable_two_level_fp8,
    )


def rounded(size: int, sizes: tuple[int, ...], build: Build) -> int:
    """The first size that is built and holds this one; 512 if there is none."""
    disabled = {
        64: build.disable_hdim64,
        96: build.disable_hdim96,
        128: build.disable_hdim128,
        192: build.disable_hdim192,
        256: build.disable_hdim256,
        512: False,
    }
    return next((s for s in sizes if size <= s and not disabled[s]), 512)


def template_of(shape: Shape, build: Build) -> Shape:
    """The shape that the kernel is instantiated with."""
    d, dv = shape.asked_d, shape.asked_dv
    if build.disable_sm8x or shape.bytes == 1 or shape.arch >= 90:
        arch = 90
    else:
        arch = 86 if shape.arch in (86, 89) else 80
    head_dim = next((s for s in HEAD_DIMS if d <= s), 512)
    head_dim_v = head_dim
    if arch == 90 and d <= 64 and shape.bytes == 2:
        head_dim_v = 512 if dv > 256 else 256 if dv > 64 else 64
    if arch == 90 and 128 < d <= 192:
        head_dim_v = 128 if dv <= 128 else 192
    return Shape(
        fork=shape.fork,
        arch=arch,
        bytes=shape.bytes,
        asked_d=d,
        asked_dv=dv,
        d=head_dim,
        dv=head_dim_v,
        softcap=shape.softcap,
        two_level=shape.two_level,
    )


def sm90_tile(
    shape: Shape, causal: bool, local: bool, nontma: bool, v_colmajor: bool, one_wg: bool
) -> Tile:
    if shape.bytes == 1:
        return sm90_fp8_tile(shape, local, nontma, v_colmajor, one_wg)
    unusual = causal or local or nontma
    if shape.d <= 64:
        return sm90_small_tile(shape, causal, local, unusual, one_wg)
    if shape.d <= 96:
        return Tile(192, 128 if local or nontma else 144, False, True)
    if shape.d <= 128:
        wide = 160 if shape.fork and not one_wg else 176
        return Tile(64 if one_wg else 128, 128 if unusual else wide, True, True)
    if shape.d <= 192:
        wide = 128 if shape.dv <= 128 else 96 if shape.fork else 112
        return Tile(128, 96 if nontma or local else wide, True, True)
    return Tile(128, 64 if local else 80, True, True)


def sm90_small_tile(shape: Shape, causal: bool, local: bool, unusual: bool, one_wg: bool) -> Tile:
    """Head dimensions up to 64."""
    if shape.dv == 512:
        return Tile(64, 64, False, False)
    if shape.dv == 256:
        return Tile(128, 96, True, False)
    if not shape.fork:
        return Tile(192, 128 if unusual else 192, unusual, True)
    if one_wg:
        return Tile(64, 192, True, True)
    n = 128 if causal else 160 if unusual else 192
    return Tile(192, n, causal or local, not local)


def sm90_fp8_tile(shape: Shape, local: bool, nontma: bool, v_colmajor: bool, one_wg: bool) -> Tile:
    if one_wg:
        return Tile(64, 128 if shape.d <= 96 else 96, True, True)
    if shape.d > 192:
        return Tile(128, 64 if local else 128, True, not nontma)
    if shape.fork and shape.two_level:
        n = 128 if shape.d <= 96 else 192 if shape.d <= 128 else 96
        return Tile(192 if shape.d <= 64 else 128, n, True, True)
    if shape.d <= 96:
        return Tile(192, 160 if shape.d <= 64 else 128, True, True)
    if shape.d <= 128:
        n = 160 if nontma else 192 if v_colmajor or (shape.softcap and local) else 224
        return Tile(128, n, True, True)
    return Tile(128, 128 if (nontma or shape.softcap) and local else 160, True, True)


def sm8x_tile(
    shape: Shape, varlen_and_split: bool, append: bool, local: bool, paged_kv: bool
) -> OldTile:
    if shape.bytes == 1:
        return OldTile(128, 64, 8, 2, False)
    sm86 = shape.arch in (86, 89)
    short = varlen_and_split or local
    if shape.d <= 64:
        return OldTile(128, 80 if varlen_and_split else 96 if local else 112, 4, 1, False)
    if shape.d <= 96:
        return OldTile(128, 48 if short else 64, 4, 1, False)
    if shape.d <= 128:
        if varlen_and_split:
            return OldTile(128, 96 if local else 112, 8, 1, True)
        if sm86:
            return OldTile(128, 96 if local else 128, 8, 1, True)
        return OldTile(128, 48 if local else 64, 4, 1, False)
    if shape.d <= 192:
        narrow = append or short or paged_kv
        return OldTile(128, 64 if narrow else 96, 8, 1 if sm86 else 2, not narrow)
    if sm86:
        return OldTile(128, 32 if append else 48 if short else 64, 8, 1, not append)
    return OldTile(128, 48 if append else 64 if short else 96, 8, 1, False)


def heuristic_tile(
    shape: Shape,
    append: bool,
    paged: bool,
    nontma: bool,
    varlen: bool,
    causal: bool,
    local: bool,
    one_wg: bool,
) -> tuple[int, int]:
    """kBlockM and kBlockN as the split heuristic takes them to be."""  # noqa: D403  # a name
    if shape.arch >= 90:
        tile = sm90_tile(shape, causal, local, nontma, False, one_wg)
        return tile.m, tile.n
    # Every call with lengths counts as one with splits, whatever it comes to.
    old = sm8x_tile(shape, varlen, append, local, paged)
    return old.m, old.n


def mma_warpgroups(block_m: int, dv: int) -> int:
    return dv // 256 if dv > 256 else block_m // 64
