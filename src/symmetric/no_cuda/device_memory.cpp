#include "src/symmetric/device_memory.hpp"

#include <untax/core/error.hpp>

namespace untax {
namespace {

[[noreturn]] void refuse() {
  throw error(
      errc::unsupported,
      "this untax was built without CUDA, so there are no worlds of GPUs; build it with "
      "-DUNTAX_CUDA=ON (or --preset cuda; pip install . -C cmake.define.UNTAX_CUDA=ON) where "
      "nvcc is");
}

}  // namespace

int visible_devices() { refuse(); }
std::string device_name(int /*device*/) { refuse(); }
std::size_t device_page(int /*device*/) { refuse(); }
segment_layout device_layout(int /*ranks*/, std::size_t /*control_bytes*/,
                             std::size_t /*first_bytes*/, std::size_t /*most_bytes*/,
                             int /*device*/) {
  refuse();
}
void use_device(int /*device*/) { refuse(); }
void share_device_streams() noexcept {}

std::unique_ptr<device_share> device_share::make(int /*rank*/, int /*device*/,
                                                 std::size_t /*bytes*/, bool /*shared*/) {
  refuse();
}
std::unique_ptr<device_arenas> arenas_of_this_process(const segment& /*memory*/,
                                                      const std::vector<int>& /*devices*/) {
  refuse();
}
std::unique_ptr<device_arenas> arenas_of_processes(const segment& /*memory*/, int /*rank*/,
                                                   int /*device*/,
                                                   std::unique_ptr<device_share> /*mine*/,
                                                   const device_shares& /*all*/) {
  refuse();
}

}  // namespace untax
