#pragma once

#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include "engines/host/engine.hpp"

namespace untax {

/// Carries it out on threads of the host. Arguments are checked already.
class merge_backend {
 public:
  /// Collective.
  merge_backend(world& w, const merge_partial_attention_problem& problem,
                const merge_partial_attention_plan& plan,
                const merge_partial_attention_options& options);

  /// Collective.
  void run(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
           const matrix& lse);

 private:
  merge_partial_attention_problem problem_;
  bool varying_;
  std::vector<float> parts_;
  std::vector<float> merged_;
  host::engine engine_;
};

}  // namespace untax
