#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <untax/taxes/ablation.hpp>

#include "ops/common/workload.hpp"
#include "ops/flash_decode/workload.hpp"
#include "ops/timing/predictor.hpp"

namespace untax {

// The factories of the backends, and their common parts.

[[nodiscard]] std::unique_ptr<tax_backend> make_host_backend(const ablation_options& options);
/// Makes symmetric heaps that are large enough for all operations.
[[nodiscard]] std::unique_ptr<tax_backend> make_device_backend(
    const ablation_options& options, const std::vector<layer_operation>& operations);

/// Untimed runs of each variant on the host.
inline constexpr int host_warmups = 1;
/// Runs of each step with a trace, if there are any; the first one warms up.
[[nodiscard]] int traced_runs_of(const ablation_options& options) noexcept;
/// The most variants of flash_decode on the host.
inline constexpr std::size_t host_attention_variants = 6;
/// The runs of flash_decode on the host in a repetition, without the transfers alone: of steps, and
/// of attention alone.
struct attention_runs {
  std::size_t steps;
  std::size_t alone;
};
[[nodiscard]] attention_runs host_attention_runs(int ranks) noexcept;
/// Heaps of a GEMM operator on the host: for its variants, its inputs and the transfers alone.
inline constexpr std::size_t host_gemm_heaps = 10;
/// The options of a rank's attention alone: the workers and splits of its fused patterns. More
/// workers would compete for cores, and other splits would change the work.
[[nodiscard]] flash_decode_options alone_like(const flash_decode_plan& fused, pattern how);
/// Measures flash_decode on the host. host_backend.cpp measures the other operators.
[[nodiscard]] tax_row measure_host_attention(const layer_operation& op,
                                             const ablation_options& options);

[[nodiscard]] bool is_attention(const layer_operation& op) noexcept;
/// The problem of an operation that is a GEMM.
[[nodiscard]] gemm_problem problem_of(const layer_operation& op) noexcept;
/// The problem of an operation that is attention; all sequences have the maximum length.
[[nodiscard]] flash_decode_problem attention_problem_of(const layer_operation& op) noexcept;
/// The fewest bytes of partial results that a rank of attention has to send.
[[nodiscard]] double attention_bytes_sent(const layer_operation& op, int ranks) noexcept;

/// The label of a variant of an operation in traces, by which `add_traces` finds it.
[[nodiscard]] std::string label_of(const layer_operation& op, const std::string& step,
                                   const std::string& ran);
/// The step that a pattern in a graph stands for: "E1" to "E4".
[[nodiscard]] std::string step_of(pattern how);
/// Adds a time to the row. If a step has several times, the one with the least median stays.
void add_step(tax_row& row, const std::string& id, const std::string& ran, const spread& time);

/// A backend that predicts times on the GPUs of a machine: by `repeats` simulations of each step,
/// in which the ranks begin at different times. Throws `unsupported` if the machine has fewer GPUs
/// than ranks.
[[nodiscard]] std::unique_ptr<tax_backend> make_predicted_backend(const timing::machine& m,
                                                                  const calibration& known,
                                                                  int ranks, int repeats,
                                                                  std::function<void()> progress);

}  // namespace untax
