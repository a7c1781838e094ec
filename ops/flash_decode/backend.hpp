#pragma once

#include <memory>

#include <untax/ops/flash_decode.hpp>

#include "engines/gpu/attention/shape.hpp"

namespace untax {

/// Runs flash_decode on one kind of machine. Arguments have been checked as far as the host can see
/// them.
class attention_backend {
 public:
  attention_backend() = default;
  attention_backend(const attention_backend&) = delete;
  attention_backend& operator=(const attention_backend&) = delete;
  virtual ~attention_backend() = default;

  virtual void run(const const_matrix& q, const attention_shard& cache, const matrix& out,
                   stream_ref stream) = 0;
};

/// The backend on threads of the host. Collective.
[[nodiscard]] process_owned<attention_backend> host_attention(world& w,
                                                              const flash_decode_problem& problem,
                                                              const flash_decode_plan& plan,
                                                              const flash_decode_options& options);

/// The backend on the GPU of a rank. Collective. Throws `unsupported` for shapes without a kernel.
[[nodiscard]] process_owned<attention_backend> device_attention(world& w,
                                                                const flash_decode_problem& problem,
                                                                const flash_decode_plan& plan);

/// A problem in the form of the kernels.
[[nodiscard]] gpu::attention_shape device_shape(const flash_decode_problem& problem);

}  // namespace untax
