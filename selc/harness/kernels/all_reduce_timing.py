# mypy: ignore-errors
"""How long an all-reduce takes on the devices, whatever its processes have to tell each other.

A rank hears over a pipe that it is to launch, which takes longer than a small message does. So each
rank captures several all-reduces, and to time them makes its device wait, meet the others' devices,
and replay. When they meet everything stands in their queues: between rank 0's two events is the
graph alone.

Messages stay in the L2 cache as far as they fit, as they do behind the product that made them.
NCCL's stand in the graph in place, without the copy that keeps a launch's input.
"""

from dataclasses import dataclass
from typing import Any, Final

from selc.harness.kernels.all_reduce_ranks import Rank

SMALL: Final = 1 << 20
IN_GRAPH: Final = {True: 32, False: 8}
"""All-reduces in a graph, of small messages and of others."""
WAIT_CYCLES: Final = 1_000_000
"""Half a millisecond, in which every rank has queued what it launches."""


def in_graph(size: int, repeat: int) -> int:
    """How many all-reduces of so many bytes stand in a graph: whole launches of `repeat`."""
    return -(-IN_GRAPH[size <= SMALL] // repeat) * repeat


@dataclass(slots=True)
class Replay:
    """A rank's graph of some all-reduces; all ranks make and time the same ones in turn."""

    me: Rank
    source: Any
    target: Any
    graph: Any
    count: int
    meeting: Any  # what is added to meet

    @classmethod
    def of(cls, me: Rank, run: tuple[str, int, int], source: Any, target: Any, count: int) -> Any:
        """Launch once, which compiles and connects, and capture."""
        import torch

        kept = target if run[0] == "nccl" else source
        me.run(*run, source, target)
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            # NCCL's own thread asks about events meanwhile.
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(count):
                    me.run(*run, kept, target)
            finally:
                graph.capture_end()
        made = cls(me, source, target, graph, count, torch.zeros_like(source[:8]))
        made.seconds()  # the first replay carries the graph to the device
        return made

    def seconds(self) -> float:
        """Seconds of one all-reduce on this rank's device."""
        import torch

        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        self.target.copy_(self.source)
        torch.cuda._sleep(WAIT_CYCLES)
        if self.me.ranks > 1:
            self.me.run("one_shot", 1, 1, self.meeting, self.meeting)
        before.record()
        self.graph.replay()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1e-3 / self.count
