#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/ops/flash_decode.hpp>

#include "ops/common/protocol_variant.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/common/trial.hpp"

namespace untax {

/// A problem, and how the keys are dealt.
struct attention_work {
  flash_decode_problem problem;
  /// Each rank holds a random number of keys of each sequence, sometimes none, not as many as it
  /// can.
  bool uneven = false;
};

/// What all ranks hold, from N(0, 1): any rank can make any part of it.
class attention_inputs {
 public:
  attention_inputs(const attention_work& work, int world, std::uint64_t seed)
      : work_(work), world_(world), seed_(seed) {}

  [[nodiscard]] std::int32_t length(int rank, std::int64_t sequence) const;
  /// q, as wide as the result.
  void fill_queries(const matrix& to) const;
  /// The cache of a rank; what no key lies in is NaN. `table` gets random pages.
  void fill_cache(int rank, const matrix& keys, const matrix& values,
                  std::vector<std::int32_t>& lengths, std::vector<std::int32_t>& table) const;
  /// The result in fp64, [batch * heads, head_dim], and what the squared norm of it is expected to
  /// be.
  struct reference {
    std::vector<double> values;
    double expected = 0;
  };
  [[nodiscard]] reference result() const;

 private:
  /// Row `key` of what a rank holds of a sequence, of all heads.
  void fill_row(std::uint64_t which, int rank, std::int64_t sequence, std::int64_t key,
                const matrix& to) const;

  attention_work work_;
  int world_;
  std::uint64_t seed_;
};

/// One rank's flash_decode with inputs, and a result that can be checked against fp64.
class attention_workload final : public trial {
 public:
  /// Collective.
  attention_workload(world& w, const attention_work& work, const flash_decode_options& options,
                     std::uint64_t seed);

  void refresh(std::uint64_t seed) override;
  void poison_result() override;
  void run() override;
  [[nodiscard]] double relative_error() const override;
  [[nodiscard]] pattern chosen() const override { return op_.plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }
  /// The bits of the result.
  [[nodiscard]] const std::vector<std::byte>& bits() const noexcept { return out_memory_; }

 private:
  [[nodiscard]] matrix own(std::vector<std::byte>& memory, const extent& size) const;

  attention_work work_;
  int world_;
  int rank_;
  attention_inputs inputs_;
  std::vector<std::byte> q_memory_;
  std::vector<std::byte> keys_memory_;
  std::vector<std::byte> values_memory_;
  std::vector<std::byte> out_memory_;
  matrix q_;
  matrix keys_;
  matrix values_;
  matrix out_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int32_t> table_;
  flash_decode op_;
};

/// The largest relative error that is right.
[[nodiscard]] double tolerance_of(const flash_decode_problem& problem) noexcept;

/// || result - reference || / || reference || in the Frobenius norm; `result` lies densely.
[[nodiscard]] double relative_error(const const_matrix& result,
                                    const attention_inputs::reference& right);

/// What `untax run` makes of it.
[[nodiscard]] trial_subject subject_of(const attention_work& work,
                                       const flash_decode_options& options, memory_kind memory);

/// Names flash_decode to whoever checks protocols.
struct attention_entry {
  std::string name = "flash_decode";
};

/// Every pattern, with splits and without.
[[nodiscard]] std::vector<protocol_variant> variants_of(const attention_entry& entry);

}  // namespace untax
