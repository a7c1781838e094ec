#include "engines/sm90/transfer/engine.hpp"

namespace untax::sm90 {

class engine::launcher {};

engine::engine(world& w, const std::string& name, transfer_code&& /*code*/) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + name +
                  ": this untax was built without CUDA; build it with -DUNTAX_CUDA=ON (or "
                  "--preset cuda) where nvcc is");
}
engine::~engine() = default;

bool engine::captures(stream_ref /*stream*/) const { return false; }

void engine::run(const void* /*in*/, void* /*out*/, std::int64_t /*between*/,
                 stream_ref /*stream*/) {}

}  // namespace untax::sm90
