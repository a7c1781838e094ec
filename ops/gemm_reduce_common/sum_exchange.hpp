#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "ops/gemm_reduce_common/device.hpp"

namespace untax {

/// The exchange on GPUs that follows the GEMMs of all ranks and adds their partials. It serves sums
/// of up to as many rows as it was made for. All ranks make it, run it and destroy it together.
class sum_exchange {
 public:
  sum_exchange() = default;
  sum_exchange(const sum_exchange&) = delete;
  sum_exchange& operator=(const sum_exchange&) = delete;
  virtual ~sum_exchange() = default;

  /// The memory for this rank's partial, row after row. It is zero where no GEMM writes: behind the
  /// last row, and at a rank without a part of k.
  [[nodiscard]] virtual void* partial() const = 0;
  /// The memory for a sum that the caller wants in `c`: `c`, or memory of the exchange if `c` is
  /// not `fit`, because it has room for fewer rows than a full shard or is of another type.
  [[nodiscard]] virtual void* place_for(void* c, bool fit) const = 0;
  /// Launches the exchange. `to` is a `place_for`; `count` is the number of elements of a full
  /// shard or, if the sum goes to all ranks, of the sum.
  virtual void run(void* to, std::int64_t count, stream_ref stream) = 0;
  /// "one all-reduce in bf16 by NCCL 2.28.9".
  [[nodiscard]] virtual std::string text() const = 0;
};

/// The exchange by NCCL, in an order of its own.
[[nodiscard]] std::shared_ptr<sum_exchange> exchange_by_library(world& w, const device_sum& sum,
                                                                bool varying_rows);
/// The exchange by the collectives of untax, in rank order: they read the partials of peers in
/// place, from symmetric memory. If a sum goes to all of more than two ranks, it is passed on into
/// `result`. Throws `out_of_memory`.
[[nodiscard]] std::shared_ptr<sum_exchange> exchange_by_kernels(world& w, const device_sum& sum,
                                                                bool varying_rows,
                                                                const symmetric_result& result);

}  // namespace untax
