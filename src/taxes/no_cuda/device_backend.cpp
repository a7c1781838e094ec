#include <untax/core/error.hpp>

#include "src/taxes/backends.hpp"

namespace untax {

std::unique_ptr<tax_backend> make_device_backend(
    const ablation_options& /*options*/, const std::vector<layer_operation>& /*operations*/) {
  throw error(errc::unsupported,
              "this untax was built without CUDA, so taxes are not measured on GPUs; build it with "
              "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

}  // namespace untax
