#include "bench_suites.hpp"

#include "option_use.hpp"

namespace untax::cli {
namespace {

const std::vector<option_use>& uses() {
  static const std::vector<option_use> all = {
      {{"--ranks"},
       {"rma", "collectives", "all-gather-gemm", "gemm-all-scatter", "gemm-reduce-scatter",
        "gemm-all-reduce", "all-reduce-norm", "flash-decode", "tune", "shared"}},
      {{"--size"}, {"collectives", "gemm", "shared"}},
      {{"--problems", "--seed"},
       {"gemm", "shared", "flash-attention", "flash-decode", "all-gather-gemm", "gemm-all-scatter",
        "gemm-reduce-scatter", "gemm-all-reduce", "locality"}},
      {{"--orders"}, {"flash-attention"}},
      {{"--sides"}, {"locality"}},
      {{"--every-plan", "--rasters", "--invariant", "--least-rows", "--most-rows"}, {"gemm"}},
      {{"--seconds"}, {"gemm", "spmv", "tune"}},
      {{"--collective", "--sweep"}, {"collectives"}},
      {{"--trace"}, {"host", "operators", "gemm", "shared"}},
      {{"--suite", "-m", "-n", "-k", "--patterns"},
       {"all-gather-gemm", "gemm-all-scatter", "gemm-reduce-scatter", "gemm-all-reduce"}},
      {{"--gather"}, {"all-gather-gemm", "gemm-all-scatter"}},
      {{"--partials"}, {"gemm-reduce-scatter", "gemm-all-reduce", "shared"}},
      {{"--tokens", "--hidden"}, {"all-reduce-norm"}},
      {{"--heads", "--batch", "--keys", "--page-size", "--bf16-partials"}, {"flash-decode"}},
      {{"--operator"}, {"tune", "shared"}},
      {{"--quick", "--check", "--held-out"}, {"tune"}},
      {{"--matrices", "--twins", "--stencils", "--take", "--most-elements", "--band",
        "--mixed-bands", "--threads", "--backend", "--dtype", "--verify", "--resume", "--schema"},
       {"spmv"}}};
  return all;
}

constexpr const char* footer =
    "host              a put beside memcpy, a fused operator beside one OpenBLAS call, a signal "
    "beside bare atomics; leave the machine alone meanwhile\n"
    "operators         every operator and pattern over a few shapes\n"
    "rma               the verbs of kernels between GPUs: rates and times beside what the link can "
    "do\n"
    "collectives       collectives between GPUs beside NCCL, plain and on symmetric windows\n"
    "gemm              a GEMM on one GPU beside cuBLASLt, in graphs: a grid, or with --problems "
    "shapes of models with any number of rows\n"
    "all-gather-gemm   between GPUs in every pattern, beside cuBLASLt and NCCL; nothing writes "
    "its weights, so a pattern may read some while the kernel ahead ends\n"
    "gemm-all-scatter  likewise\n"
    "gemm-reduce-scatter  likewise, of o and down of a model of 70 billion weights\n"
    "gemm-all-reduce   likewise\n"
    "all-reduce-norm   between GPUs beside all_reduce alone, and NCCL and a kernel that "
    "normalises\n"
    "flash-decode      attention to keys on all GPUs in every pattern, beside NCCL; with --ranks 1 "
    "the kernel of one GPU beside the rate of its memory; a grid, or with --problems shapes at "
    "random\n"
    "tune              every pattern at a grid of shapes, a coarse one first: the table by which "
    "`automatic` chooses, for UNTAX_TUNE_TABLE; with --check shapes that are not in it: is the "
    "choice good?\n"
    "spmv              products of sparse matrices and vectors on threads, or on one GPU beside "
    "cuSPARSE, in every way; --json is a table for `untax select`, and --seconds with --resume "
    "measures a long one in parts\n"
    "shared            operators between ranks that share one GPU, which compares builds of untax; "
    "--ranks 2 and 4, all_gather_gemm and gemm_all_scatter by default; with --ranks 1 sums over "
    "ranks beside the GEMM alone; with --size weights of 8192 columns\n"
    "flash-attention   attention of many queries on one GPU: a grid, or with --problems shapes at "
    "random; with --orders in every order of tiles\n"
    "locality          what kernels of untax locality read and write, on one GPU, in orders of "
    "blocks, beside a simulation; with --problems kernels, sizes and orders at random; with "
    "--sides "
    "in time and power what it gives to place data or blocks by halves of L2, for --repeat seconds "
    "each\n"
    "\n"
    "Where figures have bars, the exit status is 1 if one is missed. With --trace gemm and shared "
    "are timed twice, in turn: without and with a recording.\n"
    "\n"
    "  untax bench host\n"
    "  untax bench operators --repeat 50 --json operators.json\n"
    "  untax bench rma --ranks 4 --json rma.json\n"
    "  untax bench collectives --ranks 4 --size 65536 --sweep\n"
    "  untax bench gemm --size 16 --size 4096\n"
    "  untax bench gemm --problems 200 --seed 7 --json gemm.json\n"
    "  untax bench all-gather-gemm --suite decode --ranks 4 --json decode.json\n"
    "  untax bench gemm-reduce-scatter --ranks 2 --problems 20 --seed 7 --partials fp32\n"
    "  untax bench all-reduce-norm --ranks 2 --tokens 16 --hidden 8192\n"
    "  untax bench flash-decode --heads 70b --batch 1 --batch 16 --keys 8192\n"
    "  untax bench tune --ranks 2 --seconds 200 --json table.json\n"
    "  UNTAX_TUNE_TABLE=table.json untax bench tune --check --ranks 4\n"
    "  UNTAX_MEASURE=0 untax bench tune --check --ranks 2\n"
    "  untax bench spmv --matrices folder --json table.json --schema schema.json\n"
    "  untax bench shared --json shared.json\n"
    "  untax bench shared --operator gemm_reduce_scatter --ranks 4 --size 16 --size 128\n"
    "  untax bench flash-attention --problems 30 --json attention.json\n"
    "  untax bench gemm-all-scatter -m 8192 -n 4096 -k 12288 --patterns copy_engine";

}  // namespace

const std::vector<std::string>& bench_suites() {
  static const std::vector<std::string> all = {"host",
                                               "operators",
                                               "rma",
                                               "collectives",
                                               "gemm",
                                               "all-gather-gemm",
                                               "gemm-all-scatter",
                                               "flash-decode",
                                               "tune",
                                               "spmv",
                                               "shared",
                                               "flash-attention",
                                               "gemm-reduce-scatter",
                                               "gemm-all-reduce",
                                               "all-reduce-norm",
                                               "locality"};
  return all;
}

const char* bench_footer() { return footer; }

void refuse_foreign_options(const CLI::App& verb, const std::string& suite) {
  refuse_foreign_options(verb, uses(), "the suite ", suite);
}

}  // namespace untax::cli
