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
#include "ops/common/device_reference.hpp"
#include "ops/common/timed_operands.hpp"
#include "ops/common/workload.hpp"

namespace untax {

/// The work of one rank for one problem: inputs, a reference result, and the operators that run on
/// them. The GPU of the rank has to be the current device.
class overlap_work {
 public:
  /// Collective, as are the destructor, `plan` and `plan_parts`.
  overlap_work(world& w, const operator_entry& entry, const gemm_problem& problem,
               stream_ref stream);

  /// Makes an operator and returns its number. The operator is for the problem or, if `capacity` >
  /// 0, for any number of rows up to `capacity`, and runs the problem's number. Throws the errors
  /// of its constructor.
  int plan(pattern how, std::int64_t capacity = 0);
  /// Makes the GEMM of one rank, by untax and by cuBLASLt, and NCCL's transfer.
  void plan_parts(stream_ref stream);

  /// Launches run `i` of operator `number`. Consecutive runs use weights at different places.
  void run(int number, int i, stream_ref stream) const;
  void run_own_gemm(int i, stream_ref stream) const;
  void run_library_gemm(int i, stream_ref stream) const;
  void run_transfer(stream_ref stream) const;

  /// Poisons the result of an operator, calls `launch`, and returns the relative error. The last
  /// run that `launch` starts has to be run 0. Collective. Waits for the result.
  [[nodiscard]] double error_of(int number, stream_ref stream,
                                const std::function<void()>& launch) const;
  /// The pattern of an operator; if `automatic` was asked for, the chosen one.
  [[nodiscard]] pattern pattern_of(int number) const;
  [[nodiscard]] const std::string& explanation_of(int number) const;
  [[nodiscard]] const gemm_problem& problem() const noexcept { return problem_; }

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
  bulk::scratch multiplied_;  ///< A of a GEMM alone
  bulk::scratch product_;     ///< C of a GEMM alone
  std::function<void(stream_ref)> transfer_;
  std::optional<bulk::slab_gather> gather_;
  std::shared_ptr<bulk::communicator> ranks_;  ///< for reductions
  bulk::scratch sent_;
  bulk::scratch received_;
  std::vector<planned> ops_;
};

}  // namespace untax
