#pragma once

#include <untax/core/process_owned.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/merge_partial_attention.hpp>

namespace untax {

/// Runs the operator on one kind of machine. Arguments have been checked as far as both kinds
/// require the same.
class merge_backend {
 public:
  merge_backend() = default;
  merge_backend(const merge_backend&) = delete;
  merge_backend& operator=(const merge_backend&) = delete;
  virtual ~merge_backend() = default;

  /// Collective.
  virtual void run(const const_matrix& partial_o, const const_matrix& partial_lse,
                   const matrix& out, const matrix& lse, stream_ref stream) = 0;
};

/// The backend on threads of the host. Collective.
[[nodiscard]] process_owned<merge_backend> merge_on_host(
    world& w, const merge_partial_attention_problem& problem,
    const merge_partial_attention_plan& plan, const merge_partial_attention_options& options);

/// The backend on the GPU of a rank, which is the current device: one kernel, which may be
/// captured. Collective.
[[nodiscard]] process_owned<merge_backend> merge_on_device(
    world& w, const merge_partial_attention_problem& problem,
    const merge_partial_attention_plan& plan, bool varying_tokens);

}  // namespace untax
