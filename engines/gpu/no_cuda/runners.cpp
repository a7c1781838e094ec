#include <untax/core/error.hpp>

#include "engines/gpu/attention/attention_runner.hpp"
#include "engines/gpu/collectives/collective_runner.hpp"
#include "engines/gpu/flash_attention/flash_attention.hpp"
#include "engines/gpu/rooms/room_pool.hpp"

namespace untax::gpu {
namespace {

[[noreturn]] void refuse_runner(const std::string& subject) {
  throw error(errc::unsupported,
              subject +
                  ": this untax was built without CUDA; build it with -DUNTAX_CUDA=ON (or --preset "
                  "cuda) where nvcc is");
}

}  // namespace

class attention_runner::launcher {};

attention_runner::attention_runner(world& w, const std::string& name,
                                   const attention_shape& /*shape*/, attention_sink /*sink*/,
                                   int /*blocks*/) {
  refuse_runner("rank " + std::to_string(w.rank()) + ": " + name);
}
attention_runner::~attention_runner() = default;

stream_ref attention_runner::stream_or_own(stream_ref stream) const { return stream; }
void attention_runner::finish(stream_ref /*stream*/) {}
void attention_runner::attend(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
void attention_runner::combine(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
std::uint32_t* attention_runner::gathered() const { return nullptr; }
int attention_runner::blocks() const { return 0; }

class collective_runner::launcher {};

collective_runner::collective_runner(world& w, const std::string& name,
                                     collective_kernel&& /*code*/, room_pool* /*rooms*/) {
  refuse_runner("rank " + std::to_string(w.rank()) + ": " + name);
}
collective_runner::~collective_runner() = default;

void collective_runner::set_argument(kernel_argument&& /*first*/) {}
bool collective_runner::captures(stream_ref /*stream*/) const { return false; }

void collective_runner::run(const void* /*in*/, void* /*out*/, std::int64_t /*between*/,
                            stream_ref /*stream*/) {}

class flash_runner::launcher {};

flash_runner::flash_runner(const flash_shape& shape, order::attention_order /*how*/)
    : flash_runner(shape, std::vector<std::int32_t>{}) {}
flash_runner::flash_runner(const flash_shape& /*shape*/,
                           const std::vector<std::int32_t>& /*table*/) {
  refuse_runner("flash_attention");
}
flash_runner::flash_runner(const flash_shape& shape, const std::vector<std::int32_t>& table,
                           const flash_queues& /*queues*/)
    : flash_runner(shape, table) {}
flash_runner::flash_runner(flash_runner&&) noexcept = default;
flash_runner& flash_runner::operator=(flash_runner&&) noexcept = default;
flash_runner::~flash_runner() = default;

void flash_runner::run(const flash_operands& /*operands*/, stream_ref /*stream*/) const {}

std::shared_ptr<room_pool> make_room_pool(world& /*w*/, std::string_view /*name*/) { return {}; }

}  // namespace untax::gpu
