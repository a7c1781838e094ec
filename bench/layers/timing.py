"""Times several functions with the same result, in turn, eagerly and in CUDA graphs; in each round the slowest rank
counts."""
import os
import time
from statistics import quantiles

import torch
import torch.distributed as dist

LEAST, MOST = 2, 20  # calls in sequence for one figure
AIM = 2e-3  # seconds of these calls together


class Clock:
    """Whether the time limit has passed. All ranks get the answer of rank 0."""

    def __init__(self, seconds, device):
        self.end, self.device = time.monotonic() + seconds, device

    def left(self):
        seconds = torch.tensor([self.end - time.monotonic()], device=self.device)
        dist.broadcast(seconds, 0)
        return seconds.item()


def worst(values, device):
    """The largest values over all ranks, element by element."""
    values = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return values.tolist()


def agreed(fault, device):
    """Whether a step succeeded at every rank."""
    return worst([float(bool(fault))], device)[0] == 0


def first_fault(fault):
    """The first fault of any rank, at all ranks; None if there is none."""
    faults = [None] * dist.get_world_size()
    dist.all_gather_object(faults, fault)
    return next((text for text in faults if text), None)


class Timer:
    """The timer of one kind of device. `interval(run)` is the time of `run` after a barrier of all ranks."""

    def __init__(self, device):
        self.device, self.cuda = device, torch.device(device).type == "cuda"
        self.meeting = torch.zeros(1, device=device)
        if self.cuda:
            self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def interval(self, run):
        if not self.cuda:
            dist.barrier()
            began = time.perf_counter()
            run()
            return time.perf_counter() - began
        torch.cuda.synchronize()
        dist.all_reduce(self.meeting)  # on the stream: all GPUs begin when the last rank has arrived
        self.begin.record()
        run()
        self.end.record()
        self.end.synchronize()
        return 1e-3 * self.begin.elapsed_time(self.end)

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def calls(self, ways):
        """The number of calls of each way that are timed together."""
        took = min(worst([min(self.interval(lambda call=call: call(0)) for _ in range(3)) for call in ways.values()],
                         self.device))
        return min(max(round(AIM / max(took, 1e-6)), LEAST), MOST)

    def captured(self, call, calls):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for turn in range(calls):
                call(turn)
        return graph

    def graphs(self, ways, calls):
        """The ways as CUDA graphs of `calls` calls, and for each way that cannot be captured the reason."""
        graphs, faults = {}, {}
        for way, call in ways.items():
            fault = None
            self.synchronize()
            try:
                graph = self.captured(call, calls)
            except Exception as error:  # any error of a way is its result
                fault = str(error).strip().split("\n")[0] or type(error).__name__
            if agreed(fault, self.device):
                graphs[way] = graph.replay
            else:
                faults[way] = fault or "another rank could not capture it"
        return graphs, faults

    def rounds(self, runs, calls, rounds):
        """Percentiles of the seconds of a call, by way: 10th, 50th and 90th of `rounds` rounds."""
        times = {way: [] for way in runs}
        order = list(runs)
        for turn in range(-1, rounds):
            for way in order:
                took = self.interval(runs[way]) / calls
                if turn >= 0:
                    times[way].append(took)
            order = order[1:] + order[:1]
        slowest = {way: worst(t, self.device) for way, t in times.items()}
        return {way: dict(zip(("p10", "median", "p90"), (quantiles(t, n=10)[place] for place in (0, 4, 8)), strict=True))
                for way, t in slowest.items()}

    def measured(self, ways, modes, rounds):
        """Seconds of each way, and the reasons for missing ones, by mode."""
        calls = self.calls(ways)

        def several(call):
            for turn in range(calls):
                call(turn)

        result = {"calls": calls}
        for mode in modes:
            if mode == "eager":
                runs, faults = {way: (lambda call=call: several(call)) for way, call in ways.items()}, {}
            else:
                runs, faults = self.graphs(ways, calls)
            result[mode] = {"seconds": self.rounds(runs, calls, rounds)} | ({"not_run": faults} if faults else {})
        return result


def without_multicast():
    """NVLink multicast stays off unless the environment says otherwise; to be called before the first collective."""
    for name, value in (("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"),
                        ("NVSHMEM_DISABLE_NVLS", "1")):
        os.environ.setdefault(name, value)
