#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/ops/flash_decode.hpp>

#include "ops/common/protocol_variant.hpp"
#include "ops/common/trial.hpp"
#include "ops/flash_decode/inputs.hpp"
#include "ops/flash_decode/rank_memory.hpp"

namespace untax {

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
  [[nodiscard]] const std::vector<std::byte>& bits() const noexcept { return memory_.bits(); }

 private:
  attention_work work_;
  int world_;
  int rank_;
  attention_inputs inputs_;
  attention_memory memory_;
  flash_decode op_;
};

/// The operator as a subject of `untax run`.
[[nodiscard]] trial_subject subject_of(const attention_work& work,
                                       const flash_decode_options& options, memory_kind memory);

/// Stands for flash_decode in checks of protocols.
struct attention_entry {
  std::string name = "flash_decode";
};

/// Every pattern, with splits and without.
[[nodiscard]] std::vector<protocol_variant> variants_of(const attention_entry& entry);

}  // namespace untax
