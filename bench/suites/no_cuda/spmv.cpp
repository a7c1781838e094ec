#include <untax/core/error.hpp>

#include "bench/suites/gpu_spmv.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::bench {

namespace {

[[noreturn]] void refuse() {
  throw error(errc::unsupported,
              "spmv on a GPU takes a kernel, and this build has none: configure with the preset "
              "cuda, or -DUNTAX_CUDA=ON, where nvcc is installed");
}

}  // namespace

template <class Value, class Offset>
void measure_on_gpu(const sparse::csr<Value, Offset>& /*matrix*/, std::span<const Value> /*x*/,
                    const spmv_options& /*options*/, spmv_figures& /*to*/) {
  refuse();
}

double gpu_memory_rate() { refuse(); }

#define UNTAX_MEASURE(Value, Offset)                                                      \
  template void measure_on_gpu(const sparse::csr<Value, Offset>&, std::span<const Value>, \
                               const spmv_options&, spmv_figures&);
UNTAX_SPARSE_TYPES(UNTAX_MEASURE)
#undef UNTAX_MEASURE

}  // namespace untax::bench
