#include "engines/gpu/flash_attention/flash_attention.hpp"

#include <untax/core/error.hpp>

namespace untax::gpu {

class flash_runner::launcher {};

flash_runner::flash_runner(const flash_shape& shape, order::attention_order /*how*/)
    : flash_runner(shape, std::vector<std::int32_t>{}) {}
flash_runner::flash_runner(const flash_shape& /*shape*/,
                           const std::vector<std::int32_t>& /*table*/) {
  throw error(errc::unsupported,
              "flash_attention: this untax was built without CUDA; build it with -DUNTAX_CUDA=ON "
              "(or --preset cuda) where nvcc is");
}
flash_runner::flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table,
                           const flash_queues& /*queues*/)
    : flash_runner(shape, table) {}
flash_runner::flash_runner(flash_runner&&) noexcept = default;
flash_runner& flash_runner::operator=(flash_runner&&) noexcept = default;
flash_runner::~flash_runner() = default;

void flash_runner::run(const flash_operands& /*operands*/, stream_ref /*stream*/) const {}

}  // namespace untax::gpu
