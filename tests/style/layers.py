#!/usr/bin/env python3
"""The rule of dependence: a file includes only files of its own layer or of lower ones.

    core <- order <- select <- sparse <- locality <- memory <- symmetric <- rma <- flow <- tile <- trace <- world <- engines <- ops <- taxes <- c <- cli

Folders of engines/gpu are layers, too, in the order of GPU_LAYERS.

Three more rules keep dependencies where they belong: headers that users include name no CUDA, NCCL, MPI or Torch
header, except *.cuh; operators hold no code of kernels; and Relacy is seen only by the model engine and by model tests.
"""
import re

import gate

LAYERS = ["core", "order", "select", "sparse", "locality", "memory", "symmetric", "rma", "flow", "tile", "trace", "world", "engines", "ops", "taxes", "c", "cli"]
# Within engines/gpu; no_cuda has stand-ins for all of them.
GPU_LAYERS = ["sm90", "trace", "channel", "copy", "matrix", "words", "launch", "rooms", "gemm", "gemm_alone", "norm", "comm", "collectives",
              "packets", "attention", "flash_attention", "merge", "sparse", "no_cuda"]  # fmt: skip
DEVICE_CODE = re.compile(r"\b__(?:device|global)__\b")
FOREIGN = re.compile(r"^(cuda|cuda_\w+|cublas\w*|cub|thrust|nccl|mpi|torch|ATen|c10|nvshmem\w*)(/|\.h|$)")
MODEL_FILE = re.compile(r"^(engines/model/|ops/[^/]+/model[^/]*$|tests/.*model[^/]*$)")


def layer_of(name):
    """The layer of a file, or None for files that may use everything: tests, bench, examples, umbrella headers."""
    parts = name.split("/")
    if parts[0] in ("engines", "ops", "cli"):
        return parts[0]
    if parts[:2] == ["include", "untax"] and len(parts) > 3:
        return parts[2]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def gpu_layer_of(name):
    """The folder of engines/gpu in which a file lies, or None elsewhere."""
    parts = name.split("/")
    return parts[2] if parts[:2] == ["engines", "gpu"] and len(parts) > 3 else None


def check(tree):
    findings = []
    for name in tree.files():
        layer = layer_of(name)
        if layer and layer not in LAYERS:
            findings.append(f"{name}: '{layer}' is no layer; the layers are {', '.join(LAYERS)}")
            continue
        gpu_layer = gpu_layer_of(name)
        if gpu_layer and gpu_layer not in GPU_LAYERS:
            findings.append(f"{name}: '{gpu_layer}' is no layer of engines/gpu; the layers are {', '.join(GPU_LAYERS)}")
            continue
        if layer == "ops" and (name.endswith(".cuh") or name.endswith(".cu") and DEVICE_CODE.search(tree.text(name))):
            findings.append(f"{name}: code of kernels belongs to engines/gpu")
        for included in tree.includes(name):
            if name.startswith("include/") and not name.endswith(".cuh") and FOREIGN.match(included):
                findings.append(f"{name}: a public header may not include <{included}>; only *.cuh may")
            # A header that does not exist (yet) is judged by its name.
            target = tree.resolve(name, included) or (
                f"include/{included}" if included.startswith("untax/") else included)
            other = layer_of(target)
            if layer and other in LAYERS and LAYERS.index(other) > LAYERS.index(layer):
                findings.append(f"{name}: layer {layer} may not include {included}, which is of layer {other}")
            other = gpu_layer_of(target)
            if gpu_layer and other in GPU_LAYERS and GPU_LAYERS.index(other) > GPU_LAYERS.index(gpu_layer):
                findings.append(f"{name}: layer engines/gpu/{gpu_layer} may not include {included}")
        if name.endswith(".cpp") and not MODEL_FILE.match(name):
            for reached in tree.closure(name):
                if any(included.startswith("relacy/") for included in tree.includes(reached)):
                    findings.append(f"{name}: reaches Relacy through {reached}; only engines/model, "
                                    "ops/*/model*.cpp and tests/*/*model*.cpp may")
    return findings


BAD = [
    ("include/untax/core/a.hpp", "#include <untax/flow/wait.hpp>\n"),
    ("src/world/a.cpp", '#include "ops/x/protocol.hpp"\n'),
    ("engines/host/a.hpp", '#include "ops/x/protocol.hpp"\n'),
    ("ops/x/operator.cpp", "#include <untax/taxes/layer.hpp>\n"),
    ("include/untax/rma/a.hpp", "#include <cuda_runtime.h>\n"),
    ("include/untax/rma/a.hpp", "#include <mpi.h>\n"),
    ("include/untax/misc/a.hpp", "\n"),
    ("src/taxes/a.cpp", "#include <untax/c/world.h>\n"),
    ("ops/x/a.cuh", "\n"),
    ("ops/x/gpu.cu", "__global__ void f() {}\n"),
    ("cli/check.cpp", "#include <relacy/relacy.hpp>\n"),
    ("engines/gpu/gemm/a.hpp", '#include "engines/gpu/comm/sources/b.hpp"\n'),
    ("engines/gpu/misc/a.hpp", "\n"),
]
GOOD = [
    ("include/untax/flow/a.hpp", "#include <untax/core/error.hpp>\n"),
    ("ops/x/operator.cpp", '#include "engines/host/engine.hpp"\n'),
    ("engines/gpu/comm/sinks/a.hpp", '#include "engines/gpu/gemm/b.hpp"\n'),
    ("include/untax/rma/a.cuh", "#include <cuda_runtime.h>\n"),
    ("ops/x/model_test.cpp", "#include <relacy/relacy.hpp>\n"),
    ("tests/unit/a.cpp", "#include <untax/taxes/layer.hpp>\n"),
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
