#include <untax/core/error.hpp>

#include "engines/sm90/attention/engine.hpp"

namespace untax::sm90 {

class attention_engine::launcher {};

attention_engine::attention_engine(world& w, const std::string& name,
                                   const attention_shape& /*shape*/, attention_sink /*sink*/,
                                   int /*blocks*/) {
  throw error(errc::unsupported,
              "rank " + std::to_string(w.rank()) + ": " + name +
                  ": this untax was built without CUDA; build it with -DUNTAX_CUDA=ON (or "
                  "--preset cuda) where nvcc is");
}
attention_engine::~attention_engine() = default;

stream_ref attention_engine::stream_or_own(stream_ref stream) const { return stream; }
void attention_engine::finish() {}
void attention_engine::attend(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
void attention_engine::combine(const attention_operands& /*operands*/, stream_ref /*stream*/) {}
std::uint32_t* attention_engine::gathered() const { return nullptr; }
int attention_engine::blocks() const { return 0; }

}  // namespace untax::sm90
