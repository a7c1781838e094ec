#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <untax/tile/shard.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/communicator.hpp"

namespace untax::bulk {

/// The communicator of a world. Callers share it as long as one of them holds it. Collective.
[[nodiscard]] std::shared_ptr<communicator> communicator_of(world& w);

/// Gathers one slab of bytes from each rank; the last slabs may be shorter or empty. A slab begins
/// where it would begin if all slabs before it were full. Construction is collective.
class slab_gather {
 public:
  /// If slabs differ in size, measures whether one all-gather of padded slabs or a broadcast of
  /// each is quicker. Afterwards ranks are connected, and kernels are loaded. `uneven` is a
  /// sharding to measure instead, of at most as many bytes, for later sizes whose slabs differ.
  slab_gather(world& w, const sharding& bytes, const std::optional<sharding>& uneven = {});

  /// Sets the slabs of the next runs, which have at most the bytes of the first ones.
  void resize(const sharding& bytes) noexcept { shards_ = bytes; }

  /// Bytes of the result, with the padding behind the last slab, which is overwritten, too.
  [[nodiscard]] std::int64_t bytes() const noexcept { return shards_.full() * shards_.parts; }
  /// `in`: this rank's slab. `out`: all slabs. `in` may be this rank's place in `out`.
  /// Asynchronous; can be captured.
  void run(const void* in, void* out, stream_ref stream) const;
  /// The offset in bytes of this rank's slab in the result.
  [[nodiscard]] std::int64_t own_at() const noexcept { return rank_ * shards_.full(); }
  /// "one all-gather".
  [[nodiscard]] std::string text() const;

 private:
  enum class way : std::uint8_t { all_gather, padded, broadcasts };

  [[nodiscard]] bool equal() const { return shards_.full() * shards_.parts == shards_.extent; }
  [[nodiscard]] way now() const { return equal() ? way::all_gather : uneven_; }
  void run(way how, const void* in, void* out, stream_ref stream) const;
  [[nodiscard]] range own() const { return shards_.of(rank_); }

  sharding shards_;
  int rank_ = 0;
  way uneven_ = way::padded;             ///< used if slabs differ
  std::shared_ptr<communicator> ranks_;  ///< null if there is one rank only
};

}  // namespace untax::bulk
