#!/usr/bin/env python3
"""The rules of dependence.

A file includes only files of its own layer or of lower ones:

    core <- order <- memory <- symmetric <- rma <- flow <- tile <- trace <- world <- engines <- ops <- decoder <- taxes <- c <- cli

Folders of engines/gpu are layers, too, in the order of GPU_LAYERS. select, sparse and locality stand beside the chain,
above core and order (BESIDE).

A file includes only files of its own library and of those that this one uses, as the calls of untax_library in
CMakeLists.txt have it: the chain includes nothing from beside it, and operators include no checkers. No folders include
each other in a circle, neither do modules of the Python package.

Three more rules keep dependencies where they belong: headers that users include name no CUDA, NCCL, MPI or Torch
header, except *.cuh; operators hold no code of kernels; and Relacy is seen only by the model engine and by model tests.
"""
import ast
import re

import gate

LAYERS = ["core", "order", "memory", "symmetric", "rma", "flow", "tile", "trace", "world", "engines", "ops", "decoder", "taxes", "c", "cli"]
BESIDE = {"select": {"core", "order"}, "sparse": {"core", "order", "select"}, "locality": {"core", "order", "select"}}
# Within engines/gpu; no_cuda has stand-ins for all of them.
GPU_LAYERS = ["sm90", "trace", "channel", "copy", "matrix", "words", "launch", "rooms", "gemm", "gemm_alone", "norm", "activation", "rope_append", "comm", "collectives",
              "packets", "attention", "flash_attention", "merge", "decode_step", "sparse", "no_cuda"]  # fmt: skip
DEVICE_CODE = re.compile(r"\b__(?:device|global)__\b")
FOREIGN = re.compile(r"^(cuda|cuda_\w+|cublas\w*|cub|thrust|nccl|mpi|torch|ATen|c10|nvshmem\w*)(/|\.h|$)")
MODEL_FILE = re.compile(r"^(engines/model/|ops/[^/]+/model[^/]*$|tests/.*model[^/]*$)")
LIBRARY = re.compile(r'^untax_library\((\w+) "([^"]*)"([^)]*)\)', re.MULTILINE)
PAGE = "HACKING.md"  # draws the layers and lists the libraries
DESCRIBED = re.compile(r"^\| `(untax\w*)` \|([^|]*)\|[^|]*\|$", re.MULTILINE)
# Files of the tree that are in no library of these: the command, the C ABI, and what only tests use.
NO_LIBRARY = re.compile(r"^(?!include/|src/|engines/|ops/|decoder/)|^(src|include/untax)/c/|^include/untax/untax\.h|^ops/_skeleton/|test\.[a-z]+$")
C_ABI = re.compile(r"^src/c/")
OF_C_ABI = {"untax", "untax_decoder", "untax_select", "untax_sparse"}


def layer_of(name):
    """The layer of a file, or None for files that may use everything: tests, bench, examples, umbrella headers."""
    parts = name.split("/")
    if parts[0] in ("engines", "ops", "decoder", "cli"):
        return parts[0]
    if parts[:2] == ["include", "untax"] and len(parts) > 3:
        return parts[2]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def may_include(layer, other):
    if layer in BESIDE or other in BESIDE:
        # Engines have the kernels of sparse products; the libraries keep these apart from the rest.
        return layer == other or other in BESIDE.get(layer, LAYERS[LAYERS.index("engines"):] + list(BESIDE))
    return LAYERS.index(other) <= LAYERS.index(layer)


def gpu_layer_of(name):
    """The folder of engines/gpu in which a file lies, or None elsewhere."""
    parts = name.split("/")
    return parts[2] if parts[:2] == ["engines", "gpu"] and len(parts) > 3 else None


class Libraries:
    """Which library a file belongs to, and which ones that library uses, directly or not."""

    def __init__(self, text):
        self.rules = [(name, re.compile(rule.replace("[.]", r"\."))) for name, rule, _ in LIBRARY.findall(text)]
        self.direct = {name: set(uses.split()) for name, _, uses in LIBRARY.findall(text)}
        self.uses = dict(self.direct)
        for _ in self.uses:
            for name, direct in self.uses.items():
                self.uses[name] = direct.union(*(self.uses[other] for other in direct))

    def of(self, name):
        if NO_LIBRARY.search(name):
            return None
        library = next((library for library, rule in self.rules if rule.search(name)), None)
        # What only the model engine has is not in these libraries either.
        return None if library == "untax" and MODEL_FILE.match(name) else library

    def allowed(self, name):
        """The libraries that a file may include; None: all of them."""
        if C_ABI.match(name):
            return OF_C_ABI
        library = self.of(name)
        return None if library is None else self.uses[library] | {library}


def libraries_of(tree):
    lists = tree.root / "CMakeLists.txt"
    return Libraries((lists if lists.is_file() else gate.PROJECT / "CMakeLists.txt").read_text())


def folder_of(name):
    """The folder of a product's file, as a node of the graph without circles."""
    parts = name.split("/")
    if parts[:2] in (["engines", "gpu"], ["src", "ops"]):  # src/ops has what stands in for an operator's gpu.cu
        return "/".join(parts[:3])
    if parts[:2] == ["include", "untax"]:
        return "src/" + parts[2] if len(parts) > 3 else None  # headers and bodies are one
    if parts[0] == "decoder":
        return "src/decoder"
    if parts[0] == "ops" and len(parts) == 2:
        return name.rsplit(".", 1)[0]
    return "/".join(parts[:2]) if parts[0] in ("src", "engines", "ops") and not NO_LIBRARY.search(name) else None


def circle_in(graph):
    """Nodes of a graph that lead to each other in a circle, or nothing."""
    state = {}

    def visit(node, path):
        state[node] = "open"
        for target in sorted(graph.get(node, ())):
            if state.get(target) == "open":
                return path[path.index(target):] + [target]
            circle = None if target in state else visit(target, path + [target])
            if circle:
                return circle
        state[node] = "done"
        return None

    for node in sorted(graph):
        circle = None if node in state else visit(node, [node])
        if circle:
            return circle
    return None


def folders_of(tree):
    """The folders that each folder includes."""
    graph = {}
    for name in tree.files():
        folder = folder_of(name)
        targets = {folder_of(tree.resolve(name, i) or "") for i in tree.includes(name)} if folder else ()
        graph.setdefault(folder, set()).update(t for t in targets if t and t != folder)
    graph.pop(None, None)
    return graph


def modules_of(tree):
    """The modules that each module of the Python package imports when it is imported itself."""
    paths = {name[len("python/"):-len(".py")].replace("/", ".").removesuffix(".__init__"): name
             for name in tree.files({".py"}, ["python/untax/"])}
    graph = {}
    for module, path in paths.items():
        package = module.split(".") if path.endswith("/__init__.py") else module.split(".")[:-1]
        graph[module] = set()
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, ast.Import):
                graph[module].update(name.name for name in node.names if name.name in paths)
            if isinstance(node, ast.ImportFrom):
                base = package[:len(package) - node.level + 1] if node.level else []
                base = ".".join(base + (node.module or "").split(".")).strip(".")
                for name in node.names:
                    if f"{base}.{name.name}" in paths:
                        graph[module].add(f"{base}.{name.name}")
                    elif base in paths and name.name != "_core":
                        graph[module].add(base)
        graph[module].discard(module)
    return graph


def check(tree):
    findings = []
    libraries = libraries_of(tree)
    for name in tree.files():
        layer = layer_of(name)
        if layer and layer not in LAYERS and layer not in BESIDE:
            findings.append(f"{name}: '{layer}' is no layer; the layers are {', '.join(LAYERS + list(BESIDE))}")
            continue
        gpu_layer = gpu_layer_of(name)
        if gpu_layer and gpu_layer not in GPU_LAYERS:
            findings.append(f"{name}: '{gpu_layer}' is no layer of engines/gpu; the layers are {', '.join(GPU_LAYERS)}")
            continue
        if layer == "ops" and (name.endswith(".cuh") or name.endswith(".cu") and DEVICE_CODE.search(tree.text(name))):
            findings.append(f"{name}: code of kernels belongs to engines/gpu")
        allowed = libraries.allowed(name)
        for included in tree.includes(name):
            if name.startswith("include/") and not name.endswith(".cuh") and FOREIGN.match(included):
                findings.append(f"{name}: a public header may not include <{included}>; only *.cuh may")
            # A header that does not exist (yet) is judged by its name.
            target = tree.resolve(name, included) or (
                f"include/{included}" if included.startswith("untax/") else included)
            other = layer_of(target)
            if layer and (other in LAYERS or other in BESIDE) and not may_include(layer, other):
                findings.append(f"{name}: layer {layer} may not include {included}, which is of layer {other}")
            other = gpu_layer_of(target)
            if gpu_layer and other in GPU_LAYERS and GPU_LAYERS.index(other) > GPU_LAYERS.index(gpu_layer):
                findings.append(f"{name}: layer engines/gpu/{gpu_layer} may not include {included}")
            other = libraries.of(target)
            if allowed and other and other not in allowed:
                findings.append(f"{name}: may not include {included}, which is of {other}; it may include {', '.join(sorted(allowed))}")
        if name.endswith(".cpp") and not MODEL_FILE.match(name):
            for reached in tree.closure(name):
                if any(included.startswith("relacy/") for included in tree.includes(reached)):
                    findings.append(f"{name}: reaches Relacy through {reached}; only engines/model, "
                                    "ops/*/model*.cpp and tests/*/*model*.cpp may")
    if (tree.root / PAGE).is_file():
        page = (tree.root / PAGE).read_text()
        described = {name: set(re.findall(r"`(\w+)`", uses)) for name, uses in DESCRIBED.findall(page)}
        if described != libraries.direct:
            findings.append(f"{PAGE}: the table of libraries and what they use is not what CMakeLists.txt has: {libraries.direct}")
        if " <- ".join(LAYERS) not in page:
            findings.append(f"{PAGE}: the order of the layers is not {' <- '.join(LAYERS)}")
    for graph in (libraries.uses, folders_of(tree), modules_of(tree)):
        circle = circle_in(graph)
        if circle:
            findings.append(f"a circle: {' -> '.join(circle)}")
    return findings


BAD = [
    ("include/untax/core/a.hpp", "#include <untax/flow/wait.hpp>\n"),
    ("src/world/a.cpp", '#include "ops/x/protocol.hpp"\n'),
    ("engines/host/a.hpp", '#include "ops/x/protocol.hpp"\n'),
    ("ops/x/operator.cpp", "#include <untax/taxes/layer.hpp>\n"),
    ("ops/x/operator.cpp", "#include <untax/decoder/layer.hpp>\n"),
    ("decoder/a.cpp", "#include <untax/taxes/layer.hpp>\n"),
    ("include/untax/rma/a.hpp", "#include <cuda_runtime.h>\n"),
    ("include/untax/rma/a.hpp", "#include <mpi.h>\n"),
    ("include/untax/misc/a.hpp", "\n"),
    ("src/taxes/a.cpp", "#include <untax/c/world.h>\n"),
    ("ops/x/a.cuh", "\n"),
    ("ops/x/gpu.cu", "__global__ void f() {}\n"),
    ("cli/check.cpp", "#include <relacy/relacy.hpp>\n"),
    ("engines/gpu/gemm/a.hpp", '#include "engines/gpu/comm/sources/b.hpp"\n'),
    ("engines/gpu/misc/a.hpp", "\n"),
    ("src/world/a.cpp", "#include <untax/select/tree.hpp>\n"),
    ("ops/x/operator.cpp", "#include <untax/locality/order.hpp>\n"),
    ("src/select/a.cpp", "#include <untax/memory/policy.hpp>\n"),
    ("src/locality/a.cpp", "#include <untax/sparse/csr.hpp>\n"),
    ("ops/x/operator.cpp", '#include "engines/schedule/check.hpp"\n'),
    ("ops/x/operator.cpp", '#include "ops/common/workload.hpp"\n'),
    ("ops/x/device_schedule.cpp", '#include "engines/timing/simulate.hpp"\n'),
    ("src/c/a.cpp", '#include "ops/common/workload.hpp"\n'),
    {"ops/x/a.hpp": '#include "ops/y/b.hpp"\n', "ops/y/b.hpp": "\n", "ops/y/c.hpp": '#include "ops/x/a.hpp"\n'},
    {"CMakeLists.txt": 'untax_library(a "^src/a/" b)\nuntax_library(b "" a)\n'},
    {"CMakeLists.txt": 'untax_library(a "" b)\nuntax_library(b "")\n',
     "HACKING.md": f"{' <- '.join(LAYERS)}\n| `untax_a` | | x |\n"},
    {"python/untax/a.py": "from .b import f\n", "python/untax/b.py": "def g():\n    from . import a\n"},
]
GOOD = [
    ("include/untax/flow/a.hpp", "#include <untax/core/error.hpp>\n"),
    ("ops/x/operator.cpp", '#include "engines/host/engine.hpp"\n'),
    ("engines/gpu/comm/sinks/a.hpp", '#include "engines/gpu/gemm/b.hpp"\n'),
    ("include/untax/rma/a.cuh", "#include <cuda_runtime.h>\n"),
    ("ops/x/model_test.cpp", "#include <relacy/relacy.hpp>\n"),
    ("tests/unit/a.cpp", "#include <untax/taxes/layer.hpp>\n"),
    ("engines/host/sparse/a.cpp", "#include <untax/sparse/csr.hpp>\n"),
    ("ops/x/device_schedule.cpp", '#include "engines/schedule/check.hpp"\n#include "ops/common/device_schedule.hpp"\n'),
    ("src/taxes/a.cpp", '#include "ops/common/workload.hpp"\n'),
    ("src/c/a.cpp", "#include <untax/select/tree.hpp>\n"),
    {"ops/x/a.hpp": '#include "ops/y/b.hpp"\n', "ops/y/b.hpp": "\n", "ops/x/c.hpp": '#include "ops/x/a.hpp"\n'},
    {"CMakeLists.txt": 'untax_library(untax_a "^src/a/" untax)\nuntax_library(untax "")\n',
     "HACKING.md": f"{' <- '.join(LAYERS)}\n| `untax_a` | `untax` | x |\n| `untax` | | y |\n"},
    {"python/untax/__init__.py": "from .a import f\n", "python/untax/a.py": "from . import _core\n"},
]

if __name__ == "__main__":
    gate.main(check, BAD, GOOD)
