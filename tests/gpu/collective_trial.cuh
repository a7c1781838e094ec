#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <untax/world/world.hpp>

#include "gpus.hpp"
#include "ops/collectives_common/registry.hpp"

namespace gpu_test {

/// An expected result, span by span: elements [begin, begin + count) come from those of `rank` (of
/// all ranks, combined, if it is negative) from `index` on.
struct span {
  std::int64_t begin;
  std::int64_t count;
  int rank;
  std::int64_t index;
};

/// How a trial's memory lies.
struct trial_layout {
  std::int64_t in_offset = 0;   ///< elements by which the input is off its alignment
  std::int64_t out_offset = 0;  ///< and the result
  bool in_place = false;        ///< the result is where the input is, shifted by `in_offset`
};

/// One rank's collective on a GPU with inputs that both sides can work out, and results that are
/// poisoned before and checked, bit by bit, after each run. All on the device, so that it can be
/// captured in a graph.
class collective_trial {
 public:
  /// Collective.
  collective_trial(untax::world& w, const stream& s, const untax::collective_entry& entry,
                   const untax::collective_problem& problem,
                   const untax::collective_options& options, const trial_layout& layout);
  collective_trial(const collective_trial&) = delete;
  collective_trial& operator=(const collective_trial&) = delete;
  ~collective_trial();

  /// Launches one epoch: new inputs, poison, the collective, and the check.
  void launch();
  /// As `launch`, and this rank holds still for up to so long before the collective.
  void launch_after_stall(unsigned most_microseconds);
  /// How many elements were wrong so far, once the stream is done.
  [[nodiscard]] std::uint64_t wrong() const;
  [[nodiscard]] const std::string& explain() const { return op_->explain(); }

 private:
  /// In device memory, read by all kernels of an epoch: which one it is, and what was wrong.
  struct account {
    std::uint64_t epoch;
    std::uint64_t wrong;
  };

  untax::world* world_;
  const stream* stream_;
  untax::collective_problem problem_;
  std::int64_t in_count_;
  std::int64_t out_count_;
  std::size_t in_bytes_;
  std::size_t out_bytes_;
  bool in_place_;
  std::vector<span> expected_;
  std::unique_ptr<untax::runnable_collective> op_;
  untax::symmetric<std::byte> shared_in_;   ///< where peers touch it
  untax::symmetric<std::byte> shared_out_;  ///< likewise
  std::byte* in_memory_ = nullptr;
  std::byte* out_memory_ = nullptr;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  span* expected_there_ = nullptr;
  account* account_ = nullptr;
};

}  // namespace gpu_test
