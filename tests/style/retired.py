"""Words that were given up for those of the field, each with what to say instead and where that holds. Read by the gate
`words`."""
import re

# What is searched: code, documents and scripts, but not measured data, what is generated from it, or other people's text.
LEFT_OUT = re.compile(r"LICENSE|models/|bench/(results|data|select)/|tests/plans/chosen.txt|ops/choice/tables/|.*\.(json|svg|png|gz)$|"
                      r"tests/style/(retired|words)\.py")
GEMM = r"engines/gpu/(gemm|comm|copy|sm90)/|ops/(all_gather_gemm|gemm_all_scatter)/|tests/plans/|tests/ptx/order\.txt"
GPU = r"engines/gpu/|ops/(all_gather_gemm|gemm_all_scatter)/|tests/(plans|gpu|ptx)/"
ENGINE = r"engines/gpu/gemm/(?!sources/)"
GATHER = r"ops/all_gather_gemm/|engines/gpu/(comm|gemm/sources)/|tests/plans/gathers"
HOST = r"engines/model/|tests/litmus/"
TAXES = r"(src|include/untax|tests)/taxes/"

# (word, say, where). A word is a regular expression that stands between characters that are no letters.
WORDS = [
    (r"copy engines? of (?:a|the|its|each) multiprocessors?", "TMA; a copy engine is a DMA engine", ""),
    (r"movers?", "sender", ""),
    (r"slice_loader|loaders?", "TMA producer", GPU),
    (r"math_groups?|math warps?|math warpgroups?", "consumer, MMA warpgroup", GPU),
    (r"storers?", "epilogue warp", ""),
    (r"scouts?", "flag poller", GPU),
    (r"leading[ _]blocks?", "communication CTA", ""),
    (r"slices?", "k-block", GEMM),
    (r"tile_work", "work_tile", ""),
    (r"swapped", "swap_ab", GEMM),
    (r"helpers?", "contributor", ENGINE),
    (r"streamed", "stream-K tiles", GEMM),
    (r"y_rows|[xy]_tiles|[xy]_begin", "multicast_rows; m and n", GEMM),
    (r"bands?", "raster group, row split, core matrix", GEMM),
    (r"staging|staged", "epilogue buffer, epi_full", ENGINE),
    (r"stretch(?:es)?", "operand window; span", r"engines/gpu/|ops/"),
    (r"at_block|traffic_", "block_io, io_", GPU),
    (r"boxe?s?", "TMA tile", GEMM),
    (r"arrival_reports", "completion queue", ""),
    (r"piece", "chunk", GATHER),
    (r"pieces", "split", ENGINE),
    (r"cutters?|cut_(?:small|wide|pieces)", "chunking", ""),
    (r"cycles_until_\w+", "drain_cycles", ""),
    (r"crowded", "contention", GEMM),
    (r"pace", "rate limit, throttle", GEMM),
    (r"gather_at_once|scatter_at_once", "bulk_gather, bulk_scatter", ""),
    (r"begin to begin", "launch early (programmatic dependent launch)", ""),
    (r"await_kernels_before|let_next_kernel_start", "griddepcontrol_wait, griddepcontrol_launch_dependents", ""),
    (r"meet_cluster|meet_two_warpgroups", "cluster_sync, named_barrier_sync", ""),
    (r"conductors?", "control warp", ""),
    (r"crews?", "worker warps", ""),
    (r"held_waits?|held_signals|seldom_watch", "pending waits, pending signals, lazy watch", ""),
    (r"publishers?", "output channel", r"ops/gemm_all_scatter/\w+\.cuh"),
    (r"processors", "num_sms", GPU + r"|ops/choice/"),
    (r"dealt", "sharded; distributed; assigned", ""),
    (r"enactment|patience", "execution, no_timeout", HOST),
    (r"contest|contender|entrant", "benchmark case", TAXES),
    (r"meters?", "backend", TAXES),
    (r"is for the host to tell", "The host reports failed waits.", ""),
    (r"hears? of it", "completes on, is signalled", GPU),
    (r"\w+-?manieth", "the number of; every n-th", ""),
]

# Where a retired word means something else: (file, the text around it, why).
EXCEPTIONS = [
    (r"CHANGELOG\.md$", r"\bmovers\b.*`senders`", "says what an option was called before"),
    (r"engines/gpu/gemm/(schedule\.hpp|cost\.cpp)", r"in_bands\(|untax/order/band_width\.hpp|band_of_least_traffic\(", "the names that include/untax/order has for the axes of any grid"),
]


def findings_in(name, text):
    """(offset, what is found, what to say) of each retired word."""
    if LEFT_OUT.match(name):
        return
    for word, say, where in WORDS:
        if where and not re.match(where, name):
            continue
        for match in re.finditer(rf"(?<![A-Za-z0-9])(?:{word})(?![A-Za-z0-9])", text, re.IGNORECASE):
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            line = text[begin:end if end >= 0 else len(text)]
            if any(re.match(file, name) and re.search(around, line) for file, around, _ in EXCEPTIONS):
                continue
            yield match.start(), match.group(0), say
