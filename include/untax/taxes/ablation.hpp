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

/// Options of a measurement of taxes.
struct ablation_options {
  /// host measures with ranks that are threads, cuda with the GPUs of this machine.
  memory_kind backend = memory_kind::host;
  int ranks = 2;
  int repeats = 20;  ///< timed runs of each variant
  int workers = 0;   ///< computing workers of a rank on the host; 0: untax chooses
  std::uint64_t seed = 1;
  /// On the host each step is also run a few times with a trace, after the timed runs, for a second
  /// account. It goes to the trace that is being recorded or, if there is none, into the rows.
  bool traced = true;
  /// Called by one thread, as often for each operation as `steps_of` says. May be empty.
  std::function<void()> progress;
};

/// Divides the time of operations into parts by ablation:
///
///     E0 bulk_library, eager      E1 bulk_library, graph      E2 bulk_synchronous, graph
///     E3 producer_consumer, or copy_engine if it is better    E4 the best fused pattern
///
/// All variants work on the same matrices, interleaved in one process. The bound is the larger of
/// compute alone, with everything local, and transfers alone. On GPUs the results of all variants
/// are also checked.
class tax_backend {
 public:
  tax_backend() = default;
  tax_backend(const tax_backend&) = delete;
  tax_backend& operator=(const tax_backend&) = delete;
  virtual ~tax_backend() = default;

  /// The reason why this backend cannot measure an operation; none if it can. Throws
  /// `invalid_argument` for an unknown operator.
  [[nodiscard]] virtual std::optional<std::string> refusal(const layer_operation& op) const = 0;
  /// The number of calls of `progress` for an operation.
  [[nodiscard]] virtual int steps_of(const layer_operation& op) const = 0;
  /// Measures an operation. It blocks until all runs are done. Throws what a run of the operator
  /// throws, and `internal` if a result is wrong.
  [[nodiscard]] virtual tax_row measure(const layer_operation& op) = 0;
  /// Fills in the fields of the report about the backend. Called after all measurements.
  virtual void describe(tax_report& report) const = 0;
};

/// Makes a backend for `operations`. Throws `out_of_memory` if one of them needs more memory than
/// there is, before it allocates any, and `unsupported` if there are fewer GPUs than ranks or ranks
/// share GPUs.
[[nodiscard]] std::unique_ptr<tax_backend> make_tax_backend(
    const ablation_options& options, const std::vector<layer_operation>& operations);

/// Measures the operations that `backend` supports, and adds their rows to `report`; the others are
/// added to `report.unmeasured`. It calls `on_begin` before each measurement.
void measure_into(tax_report& report, tax_backend& backend,
                  const std::vector<layer_operation>& operations,
                  const std::function<void(const layer_operation&)>& on_begin);

}  // namespace untax
