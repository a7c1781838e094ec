"""Finds results that were measured with other kernels than those of this tree.

bench/data/measured_kernels.json has, for each commit of a result, a hash of the sources of each family of kernels,
without comments and white space. generate.py adds missing commits from git; a checkout without history needs none."""
import functools
import hashlib
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ROOT / "bench" / "data" / "measured_kernels.json"
BETWEEN_RANKS = ("engines/gpu/channel", "engines/gpu/comm", "engines/gpu/copy", "engines/gpu/packets", "engines/gpu/rooms",
                 "engines/gpu/sm90", "engines/gpu/words")
FAMILIES = {
    "gemm": (*BETWEEN_RANKS, "engines/gpu/gemm", "engines/gpu/gemm_alone", "ops/all_gather_gemm", "ops/gemm_all_reduce",
             "ops/gemm_all_scatter", "ops/gemm_reduce_common", "ops/gemm_reduce_scatter"),
    "norm": (*BETWEEN_RANKS, "engines/gpu/norm", "ops/all_reduce_norm"),
    "collectives": (*BETWEEN_RANKS, "engines/gpu/collectives"),
    "attention": (*BETWEEN_RANKS, "engines/gpu/attention", "engines/gpu/flash_attention", "engines/gpu/merge",
                  "ops/attention_common", "ops/flash_attention", "ops/flash_decode"),
    "models": (*BETWEEN_RANKS, "engines/gpu/attention", "engines/gpu/decode_step", "engines/gpu/flash_attention", "engines/gpu/gemm",
               "engines/gpu/gemm_alone", "engines/gpu/norm", "engines/gpu/rope_append", "ops/all_gather_gemm", "ops/all_reduce_norm",
               "ops/attention_common", "ops/flash_attention", "ops/gemm_all_reduce", "ops/gemm_all_scatter", "ops/gemm_reduce_common",
               "ops/gemm_reduce_scatter"),
    "verbs": ("include/untax/rma", "include/untax/flow", "bench/suites/cuda/rma"),
}
OF_FORMAT = {"untax-bench-overlap": "gemm", "untax-bench-gemm": "gemm", "untax-bench-tune-check": "gemm", "untax-bench-norm": "norm",
             "untax-async-tensor-parallelism": "gemm", "untax-torch-layers": "gemm", "untax-bench-collectives": "collectives",
             "untax-bench-attention": "attention", "untax-bench-rma": "verbs", "untax-torch-models": "models"}


def family_of(document):
    """The kernels that a file is about, or None for those of hosts."""
    if document["format"] == "untax-taxes":
        return "gemm" if "gpus" in document else None
    return OF_FORMAT.get(document["format"])


def belongs(name, family):
    return name.endswith((".cu", ".cuh")) and name.startswith(FAMILIES[family])


def hash_of(texts):
    """A hash of the sources of a family, by name."""
    whole = hashlib.sha256()
    for name in sorted(texts):
        code = re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", texts[name]))
        whole.update(f"{name}\n{code}\n".encode())
    return whole.hexdigest()[:16]


@functools.cache
def of_this_tree(family):
    folders = {ROOT / prefix for prefix in FAMILIES[family]}
    files = {path for folder in folders for path in folder.parent.glob(f"{folder.name}*")}
    files = {path for entry in files for path in ([entry] if entry.is_file() else entry.rglob("*"))}
    names = {path.relative_to(ROOT).as_posix(): path for path in files if path.is_file()}
    return hash_of({name: path.read_text(encoding="utf-8") for name, path in names.items() if belongs(name, family)})


def of_commit(commit, family):
    """The hash of the kernels at a commit, by git; None if the history lacks the commit."""
    def git(*command):
        return subprocess.run(["git", "-C", ROOT, *command], capture_output=True, text=True, check=False)

    listed = git("ls-tree", "-r", "--name-only", commit)
    if listed.returncode != 0:
        return None
    return hash_of({name: git("show", f"{commit}:{name}").stdout for name in listed.stdout.splitlines()
                    if belongs(name, family)})


@functools.cache
def known():
    return json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.is_file() else {}


def commit_of(document):
    return (document.get("commit") or "").removesuffix("-dirty")


def learn(documents):
    """Adds the hashes of commits of results that are not known."""
    for document in documents:
        family, commit = family_of(document), commit_of(document)
        if family and commit and family not in known().get(commit, {}) and (kernel := of_commit(commit, family)):
            known().setdefault(commit, {})[family] = kernel
    KNOWN.write_text(json.dumps(known(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def older(document):
    """Whether the kernels of a file differ from those of this tree, or have no recorded hash."""
    family = family_of(document)
    return family is not None and known().get(commit_of(document), {}).get(family) != of_this_tree(family)
