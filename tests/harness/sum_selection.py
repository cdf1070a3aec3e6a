from selc.lang import Bits, Neutral, Runtime, assume, knob, record, selection


@record
class Batch:
    m: Runtime[int]


@record
class Launch:
    tile: Bits[int]
    mode: Neutral[str]


@selection(family="sum", scope="launch")
def choose(batch: Batch) -> Launch:
    assume(batch.m != 13, "nobody serves thirteen")
    tile = 1 if batch.m < 8 else 4 if batch.m < 32 else 16
    scale = knob("scale", choices=(1, 2), default=1)
    return Launch(tile=tile * scale, mode="")
