#include "ops/common/without_cuda.hpp"
#include "ops/merge_partial_attention/backend.hpp"

namespace untax {

process_owned<merge_backend> merge_on_device(world& w,
                                             const merge_partial_attention_problem& /*problem*/,
                                             const merge_partial_attention_plan& /*plan*/,
                                             bool /*varying_tokens*/) {
  refuse_without_cuda(w, "merge_partial_attention");
}

}  // namespace untax
