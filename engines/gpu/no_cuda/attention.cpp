#include <untax/core/error.hpp>

#include "engines/gpu/attention/attention_runner.hpp"

namespace untax::gpu {

class attention_runner::launcher {};

attention_runner::attention_runner(world& w, const std::string& name,
                                   const attention_shape& /*shape*/, attention_sink /*sink*/,
                                   int /*blocks*/) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + name +
                  ": this untax was built without CUDA; build it with -DUNTAX_CUDA=ON (or "
                  "--preset cuda) where nvcc is");
}
attention_runner::~attention_runner() = default;

stream_ref attention_runner::stream_or_own(stream_ref stream) const { return stream; }
void attention_runner::finish(stream_ref /*stream*/) {}
void attention_runner::attend(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
void attention_runner::combine(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
std::uint32_t* attention_runner::gathered() const { return nullptr; }
int attention_runner::blocks() const { return 0; }

}  // namespace untax::gpu
