#include "engines/gpu/collectives/collective_runner.hpp"

namespace untax::gpu {

class collective_runner::launcher {};

collective_runner::collective_runner(world& w, const std::string& name,
                                     collective_kernel&& /*code*/, room_pool* /*rooms*/) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + name +
                  ": this untax was built without CUDA; build it with -DUNTAX_CUDA=ON (or "
                  "--preset cuda) where nvcc is");
}
collective_runner::~collective_runner() = default;

void collective_runner::set_argument(kernel_argument&& /*first*/) {}
bool collective_runner::captures(stream_ref /*stream*/) const { return false; }

void collective_runner::run(const void* /*in*/, void* /*out*/, std::int64_t /*between*/,
                            stream_ref /*stream*/) {}

}  // namespace untax::gpu
