"""The origin of a measurement: commit, machine, versions, and the features that the environment has and lacks."""
import os
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import torch
import torch.distributed as dist

PREFIXES = ("NCCL_", "TORCH_SYMM_MEM_", "TORCH_NCCL_", "NVSHMEM_", "UNTAX_", "CUDA_DEVICE_", "OMP_NUM_THREADS")


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().split("\n")[0]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")


def place(device):
    """The fields that name the origin of the figures."""
    cuda = torch.device(device).type == "cuda"
    commit = os.environ.get("UNTAX_COMMIT") or output_of("git", "describe", "--always", "--dirty", "--abbrev=12")
    library = f"torch {torch.__version__}" + (
        f", NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}" if cuda else ", gloo")
    return {"commit": commit, "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "device": torch.cuda.get_device_name() if cuda else processor(),
            "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if cuda else "none",
            "runtime": f"CUDA {torch.version.cuda}" if cuda else "host", "library": library,
            "ranks": dist.get_world_size(),
            "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(PREFIXES)}}
