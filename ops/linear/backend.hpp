#pragma once

#include <string>
#include <string_view>

#include <untax/ops/linear.hpp>

namespace untax {

inline constexpr std::string_view linear_name = "linear";

/// Rows of the weights, which are columns of the product.
[[nodiscard]] constexpr std::int64_t product_columns(const linear_problem& p) noexcept {
  return is_gated(p.activation) ? 2 * p.n : p.n;
}

/// Runs the operator on one kind of memory. Operands have been checked, and there are rows.
class linear_backend {
 public:
  linear_backend() = default;
  linear_backend(const linear_backend&) = delete;
  linear_backend& operator=(const linear_backend&) = delete;
  virtual ~linear_backend() = default;
  virtual void run(const linear_operands& operands, stream_ref stream) = 0;
  /// The kernels that run, as text for `explain()`.
  [[nodiscard]] virtual std::string text() const = 0;
};

[[nodiscard]] process_owned<linear_backend> host_linear(const linear_problem& problem,
                                                        const linear_options& options, int rank);
/// The backend on the GPU of the rank, which becomes the current one.
[[nodiscard]] process_owned<linear_backend> device_linear(world& w, const linear_problem& problem,
                                                          const linear_options& options);

}  // namespace untax
