#include "ops/common/without_cuda.hpp"
#include "ops/rope_append/backend.hpp"

namespace untax {

process_owned<rope_append_backend> device_rope_append(world& w,
                                                      const rope_append_problem& /*problem*/,
                                                      bool /*constant_weights*/) {
  refuse_without_cuda(w, rope_append_name);
}

}  // namespace untax
