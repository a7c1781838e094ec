#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "ops/common/device_arguments.hpp"
#include "ops/common/device_operator.hpp"
#include "ops/common/gemm_backend.hpp"
#include "ops/common/own_stream.hpp"

namespace untax {

/// Refuses, with `invalid_argument`, problems that no operator multiplies on GPUs: fp32, since the
/// tensor cores take elements of 16 bits, and n or k that are not multiples of 8, since rows have
/// to begin at multiples of 16 bytes.
void require_device_problem(std::string_view operator_name, int rank, dtype type, std::int64_t n,
                            std::int64_t k);

/// Records the number of rows of the next runs in the ledger, which finds ranks with other numbers;
/// not while `stream` is captured. Throws the error that stopped the world.
void note_rows(world& w, std::string_view operator_name, std::int64_t rows, stream_ref stream);

/// Runs a GEMM operator of GPUs for the operator's class: checks the requirements of GPUs on
/// arguments beyond those of the host, chooses the plan and the stream, and waits if no stream is
/// given.
///
/// If rows vary there is a plan for each end of a table (`row_ends`); bulk_library may be the same
/// operator for several ends. Each plan has its own kernel, lists, counters and rooms, so a run of
/// one does not affect the others, and a property that is proved of each plan alone holds in any
/// sequence of them. A run uses the first plan that was made for at least as many rows.
class device_runner final : public gemm_backend {
 public:
  /// `plans`: by ascending rows, the last one for the capacity; a single plan if rows do not vary.
  /// `libraries` is kept as long as this object: NCCL takes long to connect ranks, so the next
  /// operator that is timed finds them connected. `w` has to outlive it.
  device_runner(world& w, std::string_view operator_name, std::vector<operator_up_to> plans,
                bool rows_vary, std::shared_ptr<const void> libraries = nullptr);
  device_runner(const device_runner&) = delete;
  device_runner& operator=(const device_runner&) = delete;
  /// Collective, as the destruction of the plans is. Waits for all work on the GPU.
  ~device_runner() override;

  /// If rows vary, a run without rows launches nothing. Throws `invalid_argument` for rows with
  /// gaps between them, addresses that are not multiples of 16 bytes, and memory that the GPU
  /// cannot reach; and the error that stopped the world.
  void run(std::int64_t rows, const const_matrix& a, const const_matrix& weights, const matrix& c,
           stream_ref stream) override;

 private:
  /// Sets the number of rows of the next runs, up to the planned one. A new number is recorded in
  /// the ledger, which finds ranks with other numbers; not while `stream` is captured.
  void set_rows(std::int64_t rows, stream_ref stream);
  void require_usable(std::string_view what, const const_matrix& m);

  world* world_;
  std::string name_;
  device_arguments arguments_;
  bool rows_vary_;
  std::int64_t rows_ = -1;  ///< rows of runs, if they vary
  own_stream stream_;
  std::vector<operator_up_to> plans_;
  device_operator* current_;               ///< the plan of the next run
  std::shared_ptr<const void> libraries_;  ///< destroyed before the plans, whose end all ranks wait
                                           ///< for
};

}  // namespace untax
