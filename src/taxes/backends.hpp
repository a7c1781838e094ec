#pragma once

#include <memory>
#include <string>
#include <vector>

#include <untax/taxes/ablation.hpp>

#include "ops/common/workload.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax {

// The backends of the backends, and what they share.

[[nodiscard]] std::unique_ptr<tax_backend> make_host_backend(const ablation_options& options);
/// Takes symmetric memory that is enough for all operations.
[[nodiscard]] std::unique_ptr<tax_backend> make_device_backend(
    const ablation_options& options, const std::vector<layer_operation>& operations);

/// Untimed runs of each variant on the host.
inline constexpr int host_warmups = 1;
/// Variants of flash_decode on the host, at most.
inline constexpr std::size_t host_attention_variants = 6;
/// What is run of flash_decode on the host, less the transfers alone.
[[nodiscard]] std::size_t host_attention_runs(int ranks) noexcept;
/// Of a GEMM operator on the host: heaps for its forms, its inputs, and the transfers alone.
inline constexpr std::size_t host_gemm_heaps = 9;
/// Attention of a rank alone, as its fused patterns compute: with more workers it would fight for
/// cores, with other splits it would do other work.
[[nodiscard]] flash_decode_options alone_like(const flash_decode_plan& fused, pattern how);
/// How flash_decode is measured on the host; the other operators are in host_backend.cpp.
[[nodiscard]] tax_row measure_host_attention(const layer_operation& op,
                                             const ablation_options& options);

[[nodiscard]] bool is_attention(const layer_operation& op) noexcept;
/// Of an operation that is a GEMM.
[[nodiscard]] gemm_problem problem_of(const layer_operation& op) noexcept;
/// Of one that is attention: every sequence is as long as it can be.
[[nodiscard]] flash_decode_problem attention_problem_of(const layer_operation& op) noexcept;
/// Bytes of partial results that a rank of attention sends at least.
[[nodiscard]] double attention_bytes_sent(const layer_operation& op, int ranks) noexcept;

/// What a variant of an operation is called in traces; `step_traces` finds it by that.
[[nodiscard]] std::string label_of(const layer_operation& op, const std::string& step,
                                   const std::string& ran);
/// The step that a pattern in a graph stands for: "E1" to "E4".
[[nodiscard]] std::string step_of(pattern how);
/// Adds a time to the row; of several for one step the one with the least median stays.
void add_step(tax_row& row, const std::string& id, const std::string& ran, const spread& time);

}  // namespace untax
