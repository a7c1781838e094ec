#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/taxes/layer.hpp>
#include <untax/taxes/report.hpp>

namespace untax {

/// How the taxes are measured.
struct ablation_options {
  /// Of the ranks: host for threads, cuda for the GPUs of this machine.
  memory_kind backend = memory_kind::host;
  int ranks = 2;
  int repeats = 20;  ///< timed runs of each variant
  int workers = 0;   ///< computing workers of a rank on the host; 0: untax chooses
  std::uint64_t seed = 1;
  /// Called by one thread, for each operation as often as `steps_of` says. May be empty.
  std::function<void()> progress;
};

/// Takes the time of operations apart by ablation:
///
///     E0 bulk_library, eager      E1 bulk_library, graph      E2 bulk_synchronous, graph
///     E3 producer_consumer, or copy_engine if it is better    E4 the best fused pattern
///
/// All variants work on the same matrices, interleaved in one process. The bound is the larger of
/// the arithmetic alone, everything local, and the transfers alone. On GPUs the results of all
/// variants are checked, too.
class tax_backend {
 public:
  tax_backend() = default;
  tax_backend(const tax_backend&) = delete;
  tax_backend& operator=(const tax_backend&) = delete;
  virtual ~tax_backend() = default;

  /// Why an operation cannot be measured with this backend; none if it can. Throws
  /// `invalid_argument` for an unknown operator.
  [[nodiscard]] virtual std::optional<std::string> refusal(const layer_operation& op) const = 0;
  /// How often `progress` is called for an operation.
  [[nodiscard]] virtual int steps_of(const layer_operation& op) const = 0;
  /// Throws what running the operation throws, and `internal` if a result is wrong.
  [[nodiscard]] virtual tax_row measure(const layer_operation& op) = 0;
  /// Fills in what a report says about the backend, when it has measured.
  virtual void describe(tax_report& report) const = 0;
};

/// A backend for `operations`. Throws `out_of_memory`, before it takes any, where one of them takes
/// more memory than there is, and `unsupported` where there are fewer GPUs than ranks.
[[nodiscard]] std::unique_ptr<tax_backend> make_tax_backend(
    const ablation_options& options, const std::vector<layer_operation>& operations);

/// Measures what can be measured, and lists the rest, in `report`; says with `on_begin` which
/// operation is next.
void measure_into(tax_report& report, tax_backend& backend,
                  const std::vector<layer_operation>& operations,
                  const std::function<void(const layer_operation&)>& on_begin);

}  // namespace untax
