#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <untax/ops/merge_partial_attention.hpp>

#include "engines/bulk/scratch.hpp"
#include "ops/common/protocol_variant.hpp"
#include "ops/common/trial.hpp"

namespace untax {

/// One rank's merge_partial_attention with random inputs, of which some are empty, in memory of the
/// host or of its GPU, and a result that can be checked against fp64.
class merge_workload final : public trial {
 public:
  /// Collective.
  merge_workload(world& w, const merge_partial_attention_problem& problem,
                 const merge_partial_attention_options& options, std::uint64_t seed);

  void refresh(std::uint64_t seed) override;
  void poison_result() override;
  void run() override;
  /// Runs with so many tokens, up to those of the problem, where they vary. With a stream of a GPU
  /// it does not wait.
  void run(std::int64_t tokens, stream_ref stream = {});
  /// The larger of the errors of the result and of its logarithms.
  [[nodiscard]] double relative_error() const override;
  /// The same of other results, of as many tokens as the last run had.
  [[nodiscard]] double error_of(std::span<const float> elements,
                                std::span<const float> log_sums) const;
  /// The elements of the result, then its logarithms.
  [[nodiscard]] std::vector<float> found() const;
  [[nodiscard]] const std::vector<float>& log_sums() const { return lse_; }
  [[nodiscard]] pattern chosen() const override { return op_.plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }
  /// The bits of the result and of its logarithms.
  [[nodiscard]] std::vector<std::byte> bits() const;

 private:
  /// The inputs of a rank.
  struct inputs {
    std::vector<std::byte> partial_o;
    std::vector<float> partial_lse;
  };
  /// Inputs and results in memory of the rank's GPU.
  struct gpu_memory {
    bulk::scratch partial_o;
    bulk::scratch partial_lse;
    bulk::scratch out;
    bulk::scratch lse;
  };
  [[nodiscard]] inputs inputs_of(int rank) const;
  [[nodiscard]] matrix rows_in(void* memory, std::int64_t rows) const;
  /// Copies the result from the GPU to memory of the host.
  void fetch() const;

  merge_partial_attention_problem problem_;
  int world_;
  int rank_;
  std::uint64_t seed_ = 0;
  std::int64_t tokens_;  ///< of the last run
  range heads_;
  inputs own_;
  mutable std::vector<std::byte> out_;
  mutable std::vector<float> lse_;
  std::optional<gpu_memory> gpu_;
  merge_partial_attention op_;
};

/// The operator as a subject of `untax run`, in worlds with such memory.
[[nodiscard]] trial_subject subject_of(const merge_partial_attention_problem& problem,
                                       const merge_partial_attention_options& options,
                                       memory_kind memory);

/// The largest relative error of a correct result.
[[nodiscard]] double tolerance_of(const merge_partial_attention_problem& problem) noexcept;

/// Stands for merge_partial_attention in checks of protocols.
struct merge_entry {
  std::string name = "merge_partial_attention";
};

/// Every pattern, with all heads for all ranks and with some for each.
[[nodiscard]] std::vector<protocol_variant> variants_of(const merge_entry& entry);

}  // namespace untax
