#include "ops/common/without_cuda.hpp"
#include "ops/linear/backend.hpp"

namespace untax {

process_owned<linear_backend> device_linear(world& w, const linear_problem& /*problem*/,
                                            const linear_options& /*options*/) {
  refuse_without_cuda(w, linear_name);
}

}  // namespace untax
