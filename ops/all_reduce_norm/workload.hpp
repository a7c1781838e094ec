#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/ops/all_reduce_norm.hpp>

#include "engines/bulk/scratch.hpp"
#include "ops/all_reduce_norm/reference.hpp"
#include "ops/common/protocol_variant.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/common/trial.hpp"

namespace untax {

/// One rank's all_reduce_norm with inputs, and results that can be checked against fp64.
class norm_workload final : public trial {
 public:
  /// Collective.
  norm_workload(world& w, const all_reduce_norm_problem& problem, const operator_options& options,
                std::uint64_t seed);

  void refresh(std::uint64_t seed) override;
  void poison_result() override;
  void run() override { op_.run(inputs_); }
  /// The larger of the errors of x and of out.
  [[nodiscard]] double relative_error() const override;
  /// The same of other results, laid out as `bits()`.
  [[nodiscard]] double error_of(std::span<const std::byte> bits) const;
  [[nodiscard]] pattern chosen() const override { return op_.plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }
  /// The bits of all results: of x, of out and, if there are any, of the scales.
  [[nodiscard]] std::vector<std::byte> bits() const;

 private:
  /// The results, in memory of the host.
  [[nodiscard]] norm_results found() const;
  /// `data`, or, in a world of GPUs, a copy of it in `memory`.
  [[nodiscard]] const void* passed_on(const void* data, std::size_t bytes, bulk::scratch& memory);
  [[nodiscard]] matrix own(std::vector<std::byte>& memory, std::int64_t rows) const;
  [[nodiscard]] random_matrix part_of(int rank) const noexcept;
  /// A row of a random matrix as it was passed, in fp64.
  [[nodiscard]] std::vector<double> passed(const random_matrix& whole, std::int64_t row) const;

  all_reduce_norm_problem problem_;
  int world_;
  int rank_;
  std::uint64_t seed_ = 0;
  std::vector<std::byte> in_memory_;
  std::vector<std::byte> residual_memory_;
  std::vector<std::byte> weight_memory_;
  bool on_gpu_;
  bulk::scratch device_in_;
  bulk::scratch device_residual_;
  bulk::scratch device_weight_;
  mutable std::vector<std::byte> found_;  ///< a copy of what lies on the GPU
  norm_inputs inputs_;
  all_reduce_norm op_;
};

/// The operator as a subject of `untax run`.
[[nodiscard]] trial_subject subject_of(const all_reduce_norm_problem& problem,
                                       const operator_options& options,
                                       memory_kind memory = memory_kind::host);

/// Stands for all_reduce_norm in checks of protocols.
struct norm_entry {
  std::string name = "all_reduce_norm";
};

/// Every pattern, in one phase and in two.
[[nodiscard]] std::vector<protocol_variant> variants_of(const norm_entry& entry);

}  // namespace untax
