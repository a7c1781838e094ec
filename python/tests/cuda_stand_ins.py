#!/usr/bin/env python3
"""Lets torch from PyPI be imported on a machine that has no library of CUDA, without the gigabytes of its nvidia packages.

Usage: python3 cuda_stand_ins.py SITE_PACKAGES

torch is linked to the libraries of CUDA, and the loader refuses it without them, also for work on CPUs. This compiles a
library of a few kilobytes in place of each that is missing, with the functions that torch takes from it; each returns
cudaErrorNoDevice. The runtime itself, which torch also asks on CPUs, is better real: the package nvidia-cuda-runtime has 3 MB.
Stand-ins go into nvidia/cu13/lib (or cu12) below SITE_PACKAGES, where torch looks for them, so that
torch.cuda.is_available() is False and nothing else is changed. Such a torch is for tests.
"""
import re
import subprocess
import sys
from pathlib import Path

NO_DEVICE = 100
TEXTS = re.compile("GetErrorString|GetErrorName|GetStatusString|GetStatusName|ncclGetLastError")  # functions that return a text
TEXT = "no library of CUDA is here, but a stand-in that python/tests/cuda_stand_ins.py made"
FAMILIES = {"libnccl": "nccl", "libcusparseLt": "cusparseLt", "libcufile": "cuFile",
            "libnvshmem_host": "nvshmem"}  # whose symbols have no version


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def taken_from(library):
    """The libraries of CUDA that `library` needs with the names of their versions, and its undefined symbols with theirs."""
    text = output_of("objdump", "-p", library)
    # libcuda is the driver's, which torch loads for GPUs alone.
    needed = re.findall(r"NEEDED\s+((?:libcu|libnv|libnccl)(?!da\.so)\S+)", text)
    versions = dict.fromkeys(needed, "")
    for name, block in re.findall(r"required from (\S+):\n((?:\s+0x\S+ 0x\S+ \d+ \S+\n)+)", text):
        if name in versions:
            versions[name] = block.split()[3]
    symbols = re.findall(r"^\s+[Uw] ([^@\s]+)(?:@+(\S+))?$", output_of("nm", "-D", "--undefined-only", library), re.M)
    return versions, symbols


def compile_stand_in(name, version, symbols, folder):
    source = "".join(f'const char* {symbol}(void) {{ return "{TEXT}"; }}\n' if TEXTS.search(symbol) else
                     f"int {symbol}(void) {{ return {NO_DEVICE}; }}\n" for symbol in sorted(symbols))
    script = folder / "stand_in.map"
    script.write_text(f"{version or name} {{ global: *; }};\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", "-x", "c", "-", "-o", folder / name, f"-Wl,-soname,{name}",
                    f"-Wl,--version-script={script}"], input=source, text=True, check=True)
    script.unlink()


def main(site):
    libraries = site / "torch" / "lib"
    versions, symbols = {}, set()
    for library in sorted(libraries.glob("*.so*")):
        needed, undefined = taken_from(library)
        versions |= {name: version for name, version in needed.items() if version or name not in versions}
        symbols |= set(undefined)
    major = re.search(r"libcudart\.so\.(\d+)", " ".join(versions))
    if not major:
        print("this torch needs no library of CUDA")
        return
    folder = site / "nvidia" / f"cu{major[1]}" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, version in versions.items():
        family = next((prefix for start, prefix in FAMILIES.items() if name.startswith(start)), None)
        own = {symbol for symbol, owner in symbols
               if (owner and owner in (version, name)) or (not owner and family and re.match(family, symbol))}
        if not any(site.glob(f"nvidia/*/lib/{name}")):
            compile_stand_in(name, version, own, folder)
            count += 1
    print(f"{count} of {len(versions)} libraries of CUDA have stand-ins in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "torch", "lib").is_dir():
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
