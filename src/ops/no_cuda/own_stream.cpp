#include "ops/common/own_stream.hpp"
#include "ops/common/device_arguments.hpp"

#include <untax/core/error.hpp>

namespace untax {

// Without CUDA no world of GPUs can be made, so none of these functions is ever called.

own_stream::own_stream() {
  throw error(errc::unsupported,
              "streams are for GPUs, and this untax was built without CUDA; build it with "
              "-DUNTAX_CUDA=ON (or --preset cuda) where nvcc is");
}

stream_ref own_stream::unless(stream_ref given) const {
  return given.handle != nullptr ? given : stream_;
}
void wait_for(stream_ref /*stream*/, std::string_view /*what*/) {}

bool is_captured(stream_ref /*stream*/) { return false; }
bool reachable_by_device(const void* /*p*/) { return false; }
std::uint64_t allocation_at(const void* /*p*/) { return 0; }
void wait_for_device(const world& /*w*/) noexcept {}

}  // namespace untax
