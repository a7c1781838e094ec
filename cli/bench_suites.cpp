#include "bench_suites.hpp"

#include "arguments.hpp"
#include "bench_reports.hpp"
#include "trace.hpp"

namespace untax::cli {
namespace {

/// The description of the suites of GEMM operators.
constexpr const char* gemm_operators =
    "Every pattern at shapes of models, launched in CUDA graphs, in turn with bulk_library, which "
    "is cuBLASLt and NCCL, eagerly and in a graph. Beside the times stand the bound of the "
    "machine, a GEMM alone and NCCL alone. Nothing writes the weights, so a pattern may read some "
    "while the kernel ahead ends. Exit status 1: a result is wrong, or a bar is missed.";

void add_gemm_operator_options(CLI::App& suite, bench_options& o) {
  add_overlap_options(suite, o.overlap);
  add_problem_options(suite, o, "draw so many numbers of rows at random instead of the grid");
  add_ranks_option(suite, o);
}

void add_gathering_options(CLI::App& suite, bench_options& o) {
  add_gemm_operator_options(suite, o);
  add_gather_option(suite, o.overlap);
}

void add_summing_options(CLI::App& suite, bench_options& o) {
  add_gemm_operator_options(suite, o);
  add_partials_option(suite, o.overlap);
}

constexpr bench_suite suites[] = {
    {"host", bench_place::host, "put, a fused operator and a signal beside the bare operations",
     "A put of 64 MB beside memcpy, all_gather_gemm beside one call of OpenBLAS, a signal there "
     "and back beside bare atomics. Other work on the machine shows in the figures. Exit status "
     "1: a bar is missed.",
     "host\n"
     "host --repeat 50 --json host.json",
     [](CLI::App& suite, bench_options& o) { add_trace_option(suite, o.trace); }, run_host},
    {"operators", bench_place::host, "every operator and pattern over a few shapes",
     "GEMM operators between threads, in every pattern that the host has, with the gain of each "
     "over bulk_library. There are no bars.",
     "operators\n"
     "operators --repeat 50 --json operators.json\n"
     "operators --trace trace.json",
     [](CLI::App& suite, bench_options& o) { add_trace_option(suite, o.trace); }, run_operators},
    {"spmv", bench_place::host, "products of sparse matrices and vectors in every way",
     "y = A x on threads, or with --backend cuda on one GPU beside cuSPARSE. The matrices are "
     "those of a folder, twins of a table of profiles, or those of stencils. --json is a table "
     "for `untax select`, and --seconds with --resume measures a long one in parts. Exit status "
     "1: a result is wrong.",
     "spmv --matrices folder --json table.json --schema schema.json\n"
     "spmv --stencils --backend cuda --verify\n"
     "spmv --twins bench/select/V100.csv.gz --take 200 --json table.json --resume",
     [](CLI::App& suite, bench_options& o) {
       add_spmv_bench_options(suite, o.spmv);
       add_seconds_option(suite, o, "begin no matrix later than this");
     },
     run_spmv_bench},
    {"rma", bench_place::between_gpus, "the verbs of kernels beside the limits of the link",
     "Rates of puts and gets by number of blocks, by size, for every pair and for all ranks at "
     "once, and times of signals between kernels that run. Exit status 1: no method meets the bar "
     "of a figure.",
     "rma\n"
     "rma --ranks 4 --json rma.json",
     [](CLI::App& suite, bench_options& o) { add_ranks_option(suite, o); }, run_rma},
    {"collectives", bench_place::between_gpus,
     "collectives beside NCCL, plain and on symmetric windows",
     "all_gather, reduce_scatter, all_reduce, all_to_all and broadcast in CUDA graphs, through "
     "rooms and direct. With --sweep each in many ways, of which the quickest are shown. Exit "
     "status 1: a bar is missed, without --sweep.",
     "collectives --collective all_reduce\n"
     "collectives --ranks 4 --size 65536 --sweep\n"
     "collectives --json collectives.json",
     [](CLI::App& suite, bench_options& o) {
       add_sizes_option(suite, o, "bytes of the whole vector");
       suite.add_option("--collective", o.collectives, "only this one; several may be given")
           ->allow_extra_args(false)
           ->check(words(known_collectives()));
       suite.add_flag("--sweep", o.sweep, "measure in many ways, and show the quickest");
       add_ranks_option(suite, o);
     },
     run_collectives},
    {"gemm", bench_place::one_gpu, "a GEMM on one GPU beside cuBLASLt, in graphs",
     "A grid of shapes, or with --problems shapes of models with any number of rows, in a table "
     "for few rows and one for many. With --trace each is timed twice, in turn: without and with "
     "a recording. Exit status 1: a result is wrong, or a bar is missed.",
     "gemm --size 16 --size 4096\n"
     "gemm --problems 200 --seed 7 --json gemm.json\n"
     "gemm --problems 50 --every-plan --json plans.json",
     [](CLI::App& suite, bench_options& o) {
       add_sizes_option(suite, o, "rows of A, in place of those of the grid");
       add_problem_options(suite, o, "draw so many problems at random instead of the grid");
       add_gemm_options(suite, o.gemm);
       add_seconds_option(suite, o, "begin no problem later than this");
       add_trace_option(suite, o.trace);
     },
     run_gemm_bench},
    {"all-gather-gemm", bench_place::between_gpus,
     "all_gather_gemm in every pattern, beside cuBLASLt and NCCL", gemm_operators,
     "all-gather-gemm --suite decode --ranks 4 --json decode.json\n"
     "all-gather-gemm -m 4096 -n 8192 -k 8192 --gather k\n"
     "all-gather-gemm --problems 20 --seed 7",
     add_gathering_options,
     [](const bench_options& o) { return run_overlap("all_gather_gemm", o); }},
    {"gemm-all-scatter", bench_place::between_gpus, "gemm_all_scatter likewise", gemm_operators,
     "gemm-all-scatter --suite prefill --ranks 4\n"
     "gemm-all-scatter -m 8192 -n 4096 -k 12288 --patterns copy_engine",
     add_gathering_options,
     [](const bench_options& o) { return run_overlap("gemm_all_scatter", o); }},
    {"gemm-reduce-scatter", bench_place::between_gpus,
     "gemm_reduce_scatter likewise, of o and down of a model of 70 billion weights", gemm_operators,
     "gemm-reduce-scatter --suite decode\n"
     "gemm-reduce-scatter --ranks 2 --problems 20 --seed 7 --partials fp32",
     add_summing_options,
     [](const bench_options& o) { return run_overlap("gemm_reduce_scatter", o); }},
    {"gemm-all-reduce", bench_place::between_gpus,
     "gemm_all_reduce likewise, of o and down of a model of 70 billion weights", gemm_operators,
     "gemm-all-reduce --suite decode -m 16\n"
     "gemm-all-reduce --patterns fused_sequential,automatic --json sums.json",
     add_summing_options, [](const bench_options& o) { return run_overlap("gemm_all_reduce", o); }},
    {"all-reduce-norm", bench_place::between_gpus,
     "a sum and its norm in one beside all_reduce alone, and beside NCCL and a kernel that "
     "normalises",
     "One kernel that sums rows over ranks, adds the residual and normalises, beside our own "
     "all_reduce alone, and beside NCCL's all-reduce with a kernel for the rest. Exit status 1: a "
     "result is wrong, or a bar is missed.",
     "all-reduce-norm --ranks 2 --tokens 16 --hidden 8192\n"
     "all-reduce-norm --json norm.json",
     [](CLI::App& suite, bench_options& o) {
       add_norm_options(suite, o.norm);
       add_ranks_option(suite, o);
     },
     [](const bench_options& o) { return run_norm(o); }},
    {"flash-decode", bench_place::between_gpus,
     "attention to keys on all GPUs in every pattern, beside NCCL",
     "flash_decode in CUDA graphs: a grid of batches and numbers of keys, or with --problems "
     "shapes at random. With --ranks 1 the kernel of one GPU stands beside the rate of its "
     "memory. Exit status 1: a bar is missed.",
     "flash-decode --heads 70b --batch 1 --batch 16 --keys 8192\n"
     "flash-decode --ranks 1 --json decode.json\n"
     "flash-decode --problems 30 --seed 7",
     [](CLI::App& suite, bench_options& o) {
       add_attention_options(suite, o.attention);
       add_problem_options(suite, o, "draw so many problems at random instead of the grid");
       add_ranks_option(suite, o, 1);
     },
     run_attention},
    {"tune", bench_place::between_gpus, "the table by which `automatic` chooses on GPUs",
     "Every pattern at a grid of shapes, a coarse one first. --json writes the table, for "
     "UNTAX_TUNE_TABLE. With --check shapes that are in no table are measured: is the choice "
     "good? Exit status 1: a result is wrong, or too few choices are good.",
     "tune --ranks 2 --seconds 200 --json table.json\n"
     "tune --check --ranks 4\n"
     "tune --operator all_gather_gemm --quick",
     [](CLI::App& suite, bench_options& o) {
       suite.add_option("--operator", o.operator_name, "only this operator with a GEMM");
       add_tune_options(suite, o.tune);
       add_seconds_option(suite, o, "begin no problem later than this");
       add_rank_counts_option(suite, o, "GPUs; all of them by default; several may be given");
     },
     run_tune},
    {"shared", bench_place::one_gpu, "operators between ranks that share one GPU",
     "For comparing builds of untax, since the times say nothing of links: all_gather_gemm and "
     "gemm_all_scatter by default. With --ranks 1 sums over ranks stand beside the GEMM alone; "
     "with --size weights have 8192 columns. With --trace each is timed twice, in turn: without "
     "and with a recording. Exit status 1: a result is wrong.",
     "shared --json shared.json\n"
     "shared --operator gemm_reduce_scatter --ranks 4 --size 16 --size 128",
     [](CLI::App& suite, bench_options& o) {
       suite.add_option("--operator", o.operator_name, "only this operator with a GEMM");
       add_sizes_option(suite, o, "rows of A, in place of random problems");
       add_problem_options(suite, o, "draw so many problems at random for each operator");
       add_partials_option(suite, o.overlap);
       add_rank_counts_option(suite, o, "ranks; 2 and 4 by default; several may be given");
       add_trace_option(suite, o.trace);
     },
     run_shared},
    {"flash-attention", bench_place::one_gpu, "attention of many queries on one GPU",
     "A grid of shapes, or with --problems shapes at random. `bench/attention_torch.py` times "
     "cuDNN at those of the file. There are no bars.",
     "flash-attention\n"
     "flash-attention --problems 30 --json attention.json\n"
     "flash-attention --orders",
     [](CLI::App& suite, bench_options& o) {
       add_problem_options(suite, o, "draw so many problems at random instead of the grid");
       suite.add_flag("--orders", o.orders,
                      "time every order of tiles, not only the automatic one");
     },
     run_flash_attention},
    {"locality", bench_place::one_gpu, "kernels of `untax locality` replayed in orders of blocks",
     "A kernel replays the reads and writes of the descriptions on one GPU, in several orders of "
     "blocks, beside a simulation. With --sides: the gain, in time and power, of data or blocks "
     "that are placed by halves of L2, for --repeat seconds each. There are no bars.",
     "locality\n"
     "locality --problems 40 --seed 7 --json locality.json\n"
     "locality --sides --repeat 10",
     [](CLI::App& suite, bench_options& o) {
       add_problem_options(suite, o,
                           "draw so many kernels, sizes and orders at random instead of the grid");
       suite.add_flag("--sides", o.sides, "place data or blocks by halves of L2");
     },
     run_locality_bench}};

}  // namespace

std::span<const bench_suite> bench_suites() { return suites; }

}  // namespace untax::cli
