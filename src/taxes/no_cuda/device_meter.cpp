#include <untax/core/error.hpp>

#include "src/taxes/meters.hpp"

namespace untax {

std::unique_ptr<tax_meter> make_device_meter(const ablation_options& /*options*/,
                                             const std::vector<layer_operation>& /*operations*/) {
  throw error(errc::unsupported,
              "this untax was built without CUDA, so taxes are not measured on GPUs; build it with "
              "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

}  // namespace untax
