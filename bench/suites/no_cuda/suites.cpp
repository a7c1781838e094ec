// The suites that measure GPUs, in builds without CUDA.
#include <string>
#include <string_view>

#include <untax/core/error.hpp>

#include "bench/suites/attention.hpp"
#include "bench/suites/collectives.hpp"
#include "bench/suites/flash_attention.hpp"
#include "bench/suites/gemm.hpp"
#include "bench/suites/locality.hpp"
#include "bench/suites/norm.hpp"
#include "bench/suites/overlap.hpp"
#include "bench/suites/rma.hpp"
#include "bench/suites/shared.hpp"
#include "bench/suites/sides.hpp"
#include "bench/suites/spmv.hpp"
#include "bench/suites/tune.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::bench {
namespace {

[[noreturn]] void refuse_without_gpu(std::string_view what, std::string_view remedy = "") {
  throw error(errc::unsupported,
              std::string(what) +
                  ", and this build has no CUDA: configure with the preset cuda, or "
                  "-DUNTAX_CUDA=ON, where nvcc is installed" +
                  std::string(remedy));
}
[[noreturn]] void refuse_locality() {
  refuse_without_gpu("bench locality measures a GPU",
                     "; untax locality simulates one without CUDA");
}

}  // namespace

attention_report run_attention_suite(const attention_suite_options& /*options*/) {
  refuse_without_gpu("bench flash-decode measures GPUs");
}
collective_report run_collective_suite(const collective_suite_options& /*options*/) {
  refuse_without_gpu("this suite measures GPUs");
}
flash_report run_flash_suite(const flash_suite_options& /*options*/) {
  refuse_without_gpu("bench flash-attention measures a kernel");
}
gemm_report run_gemm_suite(const gemm_suite_options& /*options*/) {
  refuse_without_gpu("bench gemm measures a kernel");
}
replay_report run_replay_suite(const replay_suite_options& /*options*/) { refuse_locality(); }
side_report run_side_suite(const side_suite_options& /*options*/) { refuse_locality(); }
norm_report run_norm_suite(const norm_suite_options& /*options*/) {
  refuse_without_gpu("bench all-reduce-norm measures GPUs");
}
overlap_report run_overlap_suite(const overlap_options& options) {
  refuse_without_gpu("the patterns of " + options.operator_name + " are measured on GPUs");
}
rma_report run_rma_suite(const rma_suite_options& /*options*/) {
  refuse_without_gpu("bench rma measures kernels");
}
int steps_of(const rma_suite_options& /*options*/) { return 1; }
shared_report run_shared_suite(const shared_options& /*options*/) {
  refuse_without_gpu("ranks that share a GPU are measured on one");
}
tune_result run_tuning(const tune_options& /*options*/) {
  refuse_without_gpu("tables are measured on GPUs");
}

template <class Value, class Offset>
void measure_on_gpu(const sparse::csr<Value, Offset>& /*matrix*/, std::span<const Value> /*x*/,
                    const spmv_options& /*options*/, spmv_figures& /*to*/) {
  refuse_without_gpu("kernels of spmv run on a GPU");
}
double gpu_memory_rate() { refuse_without_gpu("kernels of spmv run on a GPU"); }

#define UNTAX_MEASURE(Value, Offset)                                                      \
  template void measure_on_gpu(const sparse::csr<Value, Offset>&, std::span<const Value>, \
                               const spmv_options&, spmv_figures&);
UNTAX_SPARSE_TYPES(UNTAX_MEASURE)
#undef UNTAX_MEASURE

}  // namespace untax::bench
