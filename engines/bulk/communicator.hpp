#pragma once

#include <cstdint>
#include <memory>

#include <untax/core/reduction.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/core/types.hpp>
#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/availability.hpp"

// The baseline: today's usual libraries. The header of NCCL is looked for when the build is
// configured, and its library when it is first used, so that nothing else depends on it.

namespace untax::bulk {

/// Whether NCCL can be used by this program on this machine. Loads it the first time.
[[nodiscard]] const availability& nccl();

/// The form in which the library is called, for reports.
inline constexpr const char* nccl_calls =
    "ncclCommInitRank with its own defaults, untax registers no memory with it; ncclAllGather, "
    "ncclReduceScatter, ncclAllReduce, ncclBroadcast, and ncclSend and ncclRecv in a group for "
    "all_to_all";

/// The NCCL communicator of a world of GPUs. Construction and destruction are collective.
///
/// The calls are asynchronous on `stream`, can be captured in a CUDA graph, and are made by every
/// rank in the same order. Counts are in elements. Calls may be in place as NCCL defines it. Throws
/// `unsupported` if NCCL cannot be used (`nccl()`), `internal` with NCCL's text when a call fails.
class communicator {
 public:
  explicit communicator(world& w);
  communicator(communicator&&) noexcept;
  communicator& operator=(communicator&&) noexcept;
  ~communicator();

  /// `out` gets the `shard` elements of each rank.
  void all_gather(const void* in, void* out, std::int64_t shard, dtype type, stream_ref stream);
  /// `out` gets this rank's `shard` elements of the reduced array.
  void reduce_scatter(const void* in, void* out, std::int64_t shard, dtype type, reduction how,
                      stream_ref stream);
  void all_reduce(const void* in, void* out, std::int64_t count, dtype type, reduction how,
                  stream_ref stream);
  /// Every rank sends `part` elements to every rank.
  void all_to_all(const void* in, void* out, std::int64_t part, dtype type, stream_ref stream);
  /// `out` gets the shards of all ranks. `bytes` gives their sizes in bytes. Each shard begins
  /// where it would begin if all shards before it were full.
  void gather_shards(const void* in, void* out, const sharding& bytes, stream_ref stream);
  void broadcast(const void* in, void* out, std::int64_t count, dtype type, int root,
                 stream_ref stream);

  /// The ncclComm_t.
  [[nodiscard]] void* handle() const noexcept;

 private:
  struct connection;
  std::unique_ptr<connection> connection_;
};

}  // namespace untax::bulk
