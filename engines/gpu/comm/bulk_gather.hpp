#pragma once

#include <cstdint>

#include <untax/flow/room.hpp>
#include <untax/tile/order.hpp>

#include "engines/gpu/comm/moved_operands.hpp"
#include "engines/gpu/comm/sent_shard.hpp"
#include "engines/gpu/comm/transfer_list.hpp"

namespace untax {

/// A chunk that another rank sends, or this one to itself.
struct incoming_chunk {
  int source = 0;
  int ready = -1;  ///< the counter that tells of it; negative: there is no such chunk
};

/// What comes to a rank, as plain numbers, assigned to senders like what goes out: a sender waits
/// for the chunks that its counterparts send, who wait for nothing that comes after.
struct receiving_grid {
  int rank = 0;
  int ranks = 1;
  int first_hop = 1;
  int hops = 0;
  int last_source = 0;  ///< whose shard is not empty
  int chunks = 0;       ///< of a full shard
  int last_chunks = 0;  ///< of that of `last_source`
  int ready = 0;        ///< counter of the first chunk of rank 0, in set 0
  int ready_set = 0;
  int ready_source = 0;

  template <class Layout>
  [[nodiscard]] static constexpr receiving_grid of(const Layout& how) noexcept {
    receiving_grid grid;
    grid.rank = how.rank();
    grid.ranks = how.world();
    grid.first_hop = how.first_hop();
    grid.hops = how.world() - how.first_hop();
    grid.last_source = how.last_source();
    grid.chunks = how.most_chunks();
    grid.last_chunks = how.chunks_of(how.last_source());
    grid.ready = how.ready_counter(0, 0, 0);
    grid.ready_set = how.ready_counter(1, 0, 0) - grid.ready;
    grid.ready_source = how.ready_counter(0, 1, 0) - grid.ready;
    return grid;
  }

  /// How many waits fall to a sender, at most: that is how many numbers `at` takes.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int count(strided share) const noexcept {
    return hops * share.share_of(chunks);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr incoming_chunk at(strided share, int set,
                                                              int i) const noexcept {
    const int turn = i / hops;
    const int source = source_at_hop(rank, first_hop + i - turn * hops, ranks);
    const int index = share.at(turn);
    const int there = source < last_source ? chunks : source == last_source ? last_chunks : 0;
    return {source, index < there ? ready + set * ready_set + source * ready_source + index : -1};
  }
};

/// What a kernel is given that gathers all of A before a GEMM starts, where chunks are no TMA
/// tiles.
struct bulk_gather {
  gpu::moved_operands moved;
  room_sets sets;
  int senders = 1;  ///< blocks
  sent_shard shard;
  comm::sender_lists lists;
  receiving_grid receiving;

  [[nodiscard]] UNTAX_HOST_DEVICE bool dry() const { return moved.run.launch < 0; }
};

}  // namespace untax
