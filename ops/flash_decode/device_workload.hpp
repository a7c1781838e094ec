#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/bulk/scratch.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax {

/// One rank's flash_decode with inputs in memory of its GPU, which is the current device. The
/// result is checked on the host, against fp64.
class device_attention_workload final : public trial {
 public:
  /// Collective.
  device_attention_workload(world& w, const attention_work& work,
                            const flash_decode_options& options, std::uint64_t seed);

  void refresh(std::uint64_t seed) override;
  void poison_result() override;
  void run() override;
  [[nodiscard]] double relative_error() const override;
  [[nodiscard]] pattern chosen() const override { return op_.plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }

 private:
  /// Memory of the GPU as large as a matrix, and the matrix there.
  struct placed {
    placed(dtype type, const extent& size);
    bulk::scratch memory;
    matrix there;
  };

  attention_work work_;
  int world_;
  int rank_;
  attention_inputs inputs_;
  placed q_;
  placed keys_;
  placed values_;
  placed out_;
  bulk::scratch lengths_;
  bulk::scratch table_;
  flash_decode op_;
};

/// An upper bound on the bytes of symmetric heap of a rank on GPUs, in any pattern.
[[nodiscard]] std::size_t device_heap_for(const flash_decode_problem& problem, int world);

}  // namespace untax
