#include "engines/gpu/gemm/gemm.hpp"

#include <vector>

#include "engines/gpu/gemm/io.cuh"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/gemm/tensor_map.hpp"
#include "engines/gpu/gemm/variant.hpp"
#include "engines/gpu/launch/num_sms.hpp"

namespace untax::gpu {
namespace {

std::vector<kernel_variant> variants() {
  return {
#define UNTAX_KERNEL(name, ...) variant_of<tile_config{__VA_ARGS__}, local_io>(),
#include "engines/gpu/gemm/kernels.def"
#undef UNTAX_KERNEL
  };
}

}  // namespace

class gemm::launcher {
 public:
  launcher(const gemm_shape& shape, const gemm_plan& plan)
      : shape_(shape), launcher_(plan, shape.type, variant_for(variants(), plan.config), 0) {}

  void run(const void* a, const void* b, void* c, cudaStream_t stream) const {
    const gemm_plan& p = plan();
    const auto& [m, n, k, type] = shape_;
    gemm_arguments maps;
    maps.a = tensor_map_of({a, m, k, k}, type, a_tma_tile_rows(p), read_together(p));
    maps.b = tensor_map_of({b, n, k, k}, type, b_tma_tile_rows(p), read_together(p));
    maps.c = result_map_of({c, m, n, n}, type, p.config);
    const local_io protocol;
    launcher_.launch(maps, &protocol, stream);
  }

  [[nodiscard]] const gemm_plan& plan() const noexcept { return launcher_.plan(); }

 private:
  gemm_shape shape_;
  gemm_launcher launcher_;
};

gemm::gemm(const gemm_shape& shape) : gemm(shape, gemm_plans(shape, num_sms_here()).front()) {}
gemm::gemm(const gemm_shape& shape, const gemm_plan& plan)
    : launcher_(std::make_unique<launcher>(shape, plan)) {}
gemm::gemm(gemm&&) noexcept = default;
gemm& gemm::operator=(gemm&&) noexcept = default;
gemm::~gemm() = default;

void gemm::run(const void* a, const void* b, void* c, stream_ref stream) const {
  launcher_->run(a, b, c, static_cast<cudaStream_t>(stream.handle));
}

const gemm_plan& gemm::plan() const noexcept { return launcher_->plan(); }

}  // namespace untax::gpu
