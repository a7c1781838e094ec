#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/communicator.hpp"

namespace untax::bulk {

/// The communicator of a world: the same as long as somebody has it. Collective.
[[nodiscard]] std::shared_ptr<communicator> communicator_of(world& w);

/// Gathers slabs of bytes, one of each rank, the last ones shorter or empty. Slab r begins where it
/// would if all before were full. Construction is collective.
class slab_gather {
 public:
  /// Where slabs differ in size, measures whether one all-gather of padded slabs or a broadcast of
  /// each is quicker. Afterwards ranks are connected, and kernels are loaded.
  slab_gather(world& w, const sharding& bytes);

  /// Bytes of the result; those behind the last slab are overwritten, too.
  [[nodiscard]] std::int64_t bytes() const noexcept { return shards_.full() * shards_.parts; }
  /// `in`: this rank's slab. `out`: all of them; `in` may lie where it belongs there. Asynchronous;
  /// can be captured.
  void run(const void* in, void* out, stream_ref stream) const;
  /// Where this rank's slab belongs in the result: bytes from its beginning.
  [[nodiscard]] std::int64_t own_at() const noexcept { return rank_ * shards_.full(); }
  /// "one all-gather".
  [[nodiscard]] std::string text() const;

 private:
  enum class way : std::uint8_t { all_gather, padded, broadcasts };

  void run(way how, const void* in, void* out, stream_ref stream) const;
  [[nodiscard]] range own() const { return shards_.of(rank_); }

  sharding shards_;
  int rank_ = 0;
  way way_ = way::all_gather;
  std::shared_ptr<communicator> ranks_;  ///< null if there is one rank only
};

}  // namespace untax::bulk
