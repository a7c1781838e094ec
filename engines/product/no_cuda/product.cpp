#include "engines/product/product.hpp"

#include <untax/core/error.hpp>

namespace untax {

class product::state {};

product::product(const product_shape& shape) : product(shape, {shape.m}) {}
product::product(const product_shape& /*shape*/, const std::vector<std::int64_t>& /*ends*/,
                 std::int64_t /*least*/) {
  throw error(errc::unsupported,
              "products on GPUs: this untax was built without CUDA; build it with -DUNTAX_CUDA=ON "
              "(or --preset cuda) where nvcc is");
}
product::product(product&&) noexcept = default;
product& product::operator=(product&&) noexcept = default;
product::~product() = default;

void product::set_rows(std::int64_t /*rows*/) {}
void product::run(const void* /*a*/, const void* /*b*/, void* /*c*/, stream_ref /*stream*/) const {}
bool product::run_gated(const void* /*a*/, const void* /*b*/, activation_function /*function*/,
                        const void* /*bias*/, void* /*out*/, stream_ref /*stream*/) const {
  return false;
}
std::string product::text() const { return {}; }

}  // namespace untax
