#pragma once

#include <string_view>

#include <untax/ops/flash_attention.hpp>

namespace untax {

inline constexpr std::string_view flash_attention_name = "flash_attention";

/// Runs the operator on one kind of memory. Operands have been checked.
class flash_attention_backend {
 public:
  flash_attention_backend() = default;
  flash_attention_backend(const flash_attention_backend&) = delete;
  flash_attention_backend& operator=(const flash_attention_backend&) = delete;
  virtual ~flash_attention_backend() = default;
  virtual void run(const flash_attention_operands& operands, stream_ref stream) = 0;
};

/// `problem` has a scale.
[[nodiscard]] process_owned<flash_attention_backend> host_flash_attention(
    const flash_attention_problem& problem, int rank);
/// The backend on the GPU of the rank, which becomes the current one.
[[nodiscard]] process_owned<flash_attention_backend> device_flash_attention(
    world& w, const flash_attention_problem& problem, order::attention_order order);

}  // namespace untax
