#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/library_gemm.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"
#include "engines/gpu/gemm_alone/gemm.hpp"
#include "ops/common/device_workload.hpp"
#include "ops/common/timed_operands.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// What one rank has for one problem: inputs, a reference, and everything that is run on them. The
/// GPU of the rank is the current device.
class overlap_work {
 public:
  /// Collective, as its end is, and as `plan` and `plan_parts` are.
  overlap_work(world& w, const operator_entry& entry, const gemm_problem& problem,
               stream_ref stream);

  /// Makes an operator; its number. Throws what its constructor throws.
  int plan(pattern how);
  /// Makes the GEMM of one rank, by untax and by cuBLASLt, and what NCCL would send.
  void plan_parts(stream_ref stream);

  /// Launches run `i` of operator `number`; runs take weights at different places in turn.
  void run(int number, int i, stream_ref stream) const;
  void run_own_gemm(int i, stream_ref stream) const;
  void run_library_gemm(int i, stream_ref stream) const;
  void run_transfer(stream_ref stream) const;

  /// Poisons the result of an operator, calls `launch`, whose last run is to be run 0 of the
  /// operator, and returns the relative error. Collective. Waits.
  [[nodiscard]] double error_of(int number, stream_ref stream,
                                const std::function<void()>& launch) const;
  /// What an operator is, where `automatic` was asked for.
  [[nodiscard]] pattern pattern_of(int number) const;
  [[nodiscard]] const std::string& explanation_of(int number) const;

 private:
  struct planned {
    std::unique_ptr<runnable> op;
    matrix c;
  };

  void plan_reduction();
  void plan_gather();

  world* world_;
  const operator_entry& entry_;
  gemm_problem problem_;
  gemm_share share_;
  timed_operands operands_;
  std::optional<device_reference> right_;
  std::optional<gpu::gemm> own_gemm_;
  std::optional<bulk::library_gemm> library_gemm_;
  bulk::scratch multiplied_;  ///< what a GEMM alone multiplies
  bulk::scratch product_;     ///< where it puts the result
  std::function<void(stream_ref)> transfer_;
  std::optional<bulk::slab_gather> gather_;
  std::shared_ptr<bulk::communicator> ranks_;  ///< that reduce
  bulk::scratch sent_;
  bulk::scratch received_;
  std::vector<planned> ops_;
};

}  // namespace untax
