#include "run_request.hpp"

#include <fmt/format.h>

#include <untax/core/pattern.hpp>

namespace untax::cli {
namespace {

constexpr const char* patterns_text =
    "untax run OPERATOR --help explains its options.\n"
    "\n"
    "Patterns, from no overlap to all of it; an operator has some of them:\n";

constexpr const char* other_text =
    "\n"
    "Times are from the first rank that starts to the last one that ends. With --verify inputs are "
    "fresh, results are NaN before the run and compared with fp64 after it; a wrong result is exit "
    "status 1.\n"
    "Started by torchrun, mpirun or srun, the command joins their world.\n"
    "With --backend cuda ranks are GPUs, runs are launched eagerly, and results are compared with "
    "fp32 sums on the GPU, those of attention over all ranks and of operators that send nothing "
    "with fp64.\n"
    "\n"
    "  untax run all_gather_gemm --ranks 4 --pattern all -m 512 --verify\n"
    "  untax run gemm_reduce_scatter --ranks 2 --processes --dtype bf16 --explain\n"
    "  untax run all_reduce --ranks 4 -n 100000 --reduction max --verify\n"
    "  untax run flash_decode --ranks 4 --keys 2000 --page-size 16 --unequal --verify\n"
    "  untax run spmv --matrix matrix.mtx.gz --iterations 100 --verify";

const char* meaning_of(pattern p) {
  switch (p) {
    case pattern::automatic:
      return "untax chooses; --explain says what and why";
    case pattern::bulk_library:
      return "one library GEMM and a plain collective, a barrier between them";
    case pattern::bulk_synchronous:
      return "own tiles, a barrier, an own collective";
    case pattern::producer_consumer:
      return "two kernels at the same time, tile flags between them";
    case pattern::copy_engine:
      return "own tiles; DMA engines move them; GPUs only";
    case pattern::fused_sequential:
      return "one kernel; the worker that computes a tile also moves it";
    case pattern::fused_specialized:
      return "one kernel; some workers move, the others compute";
    case pattern::fused_warp_specialized:
      return "one kernel; warps of a block load, multiply and move; GPUs only";
  }
  return "";
}

}  // namespace

std::string run_footer() {
  std::string text = patterns_text;
  for (const pattern p : all_patterns)
    text += fmt::format("  {:<24}  {}\n", name_of(p), meaning_of(p));
  return text + "  all                       those that the operator has here, in turn\n" +
         other_text;
}

}  // namespace untax::cli
