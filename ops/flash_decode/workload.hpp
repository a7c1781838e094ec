#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/ops/flash_decode.hpp>

#include "ops/common/operator_trial.hpp"
#include "ops/common/protocol_variant.hpp"
#include "ops/flash_decode/inputs.hpp"

namespace untax {

/// The operands of flash_decode at a rank, as `operator_trial` takes them.
class attention_operands {
 public:
  using problem_type = attention_work;
  using options_type = flash_decode_options;
  using operator_type = flash_decode;
  enum : std::size_t { q, keys, values, out, lengths, page_table };

  attention_operands(const attention_work& work, int world, int rank)
      : work_(work), world_(world), rank_(rank) {}

  [[nodiscard]] std::vector<trial_operand> operands() const;
  [[nodiscard]] std::unique_ptr<flash_decode> make(world& w,
                                                   const flash_decode_options& options) const;
  void fill(std::uint64_t seed, operand_set& set) const;
  void run(flash_decode& op, operand_set& set, stream_ref stream) const;
  [[nodiscard]] double relative_error(std::uint64_t seed, operand_set& set) const;

 private:
  attention_work work_;
  int world_;
  int rank_;
};

/// One rank's flash_decode with inputs, and a result that can be checked against fp64.
using attention_workload = operator_trial<attention_operands>;

/// The operator as a subject of `untax run`.
[[nodiscard]] trial_subject subject_of(const attention_work& work,
                                       const flash_decode_options& options, memory_kind memory);

}  // namespace untax
