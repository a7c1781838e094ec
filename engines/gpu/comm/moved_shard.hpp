#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/order.hpp>

#include "engines/gpu/comm/transfer_list.hpp"
#include "engines/gpu/copy/moved_operands.hpp"

namespace untax {

/// What senders of `all_gather_gemm_protocol::push` need in addition to their lists, in plain
/// 32-bit numbers: the protocol itself computes in 64 bits, step by step.
struct sent_shard {
  bool counted = true;  ///< readers retire what they have read, see `counts_readers`
  int rows = 0;
  int columns = 0;
  int inbox_row = 0;  ///< first row in the inbox of every rank, in set 0
  int inbox_column = 0;
  int set_rows = 0;  ///< rows of a set of the inbox
  int ready = 0;     ///< counter of the first chunk at every consumer, in set 0
  int ready_set = 0;
  /// The difference between a counter of this run and the counter that a list names: lists are made
  /// for the maximum number of rows of any run.
  int listed_from = 0;
  int free = 0;  ///< the counter for consumer 0 at this rank, in set 0
  int free_set = 0;
  int chunk_bytes = 2;  ///< of a full chunk, also if the end of the shard cuts one off

  template <class Layout>
  [[nodiscard]] static constexpr sent_shard of(const Layout& how) noexcept {
    const int me = how.rank();
    const auto part = how.shard(me);
    const auto down = how.row_chunks(me);
    const auto across = how.col_chunks(me);
    sent_shard shard;
    shard.counted = how.counts_readers();
    shard.rows = static_cast<int>(down.whole.size);
    shard.columns = static_cast<int>(across.whole.size);
    shard.inbox_row = static_cast<int>(how.by_rows() ? part.begin : 0);
    shard.inbox_column = static_cast<int>(how.by_rows() ? 0 : part.begin);
    shard.set_rows = static_cast<int>(how.inbox().rows / how.sets().sets);
    shard.ready = how.ready_counter(0, me, 0);
    shard.listed_from = me * (how.most_chunks() - how.listed_rows(0) * how.col_chunks(0).count());
    shard.ready_set = how.ready_counter(1, me, 0) - shard.ready;
    shard.free = how.free_counter(0, 0);
    shard.free_set = how.free_counter(1, 0) - shard.free;
    shard.chunk_bytes = static_cast<int>(down.step * across.step * 2);
    return shard;
  }

  /// The room of a chunk in the inbox of `consumer`. `listed`: the counter that the list names. The
  /// producer, which is this rank, is not set.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room inbox_room(int set, int consumer, int listed,
                                                            std::uint64_t use) const noexcept {
    room r;
    r.consumer = consumer;
    r.number = ready + set * ready_set;
    r.ready = publish_counter(set, listed);
    r.free = free_counter(set, consumer);
    r.use = use;
    return r;
  }
  /// How many of a list entry's rows exist in this run: lists are made for the maximum number of
  /// rows.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rows_of(const comm::transfer& p) const noexcept {
    return p.row + p.rows <= rows ? p.rows : p.row < rows ? rows - p.row : 0;
  }
  /// The counter of rooms of set `set` that stands for counter `listed` of a transfer list.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int publish_counter(int set,
                                                                int listed) const noexcept {
    return listed + set * ready_set + listed_from;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int free_counter(int set, int peer) const noexcept {
    return free + set * free_set + peer;
  }
};

/// A chunk that a peer sends, or that this rank sends to itself.
struct incoming_chunk {
  int source = 0;
  int ready = -1;  ///< the counter that signals the chunk; negative: there is no chunk
};

/// The chunks that arrive at a rank, in plain numbers, distributed over its senders like the chunks
/// that it sends: a sender waits for chunks from the senders of the same number at peers. These
/// senders do not depend on any later step of this sender, so no cycle of waits arises.
struct receiving_grid {
  int rank = 0;
  int ranks = 1;
  int first_hop = 1;
  int hops = 0;
  int last_source = 0;  ///< the last rank whose shard is not empty
  int chunks = 0;       ///< of a full shard
  int last_chunks = 0;  ///< of the shard of `last_source`
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

  /// An upper bound of a sender's waits: `at` takes numbers below it.
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

/// Arguments of a kernel that gathers all of A before a GEMM starts, if chunks are not TMA tiles.
struct bulk_gather {
  gpu::moved_operands moved;
  room_sets sets;
  int senders = 1;  ///< number of blocks
  sent_shard shard;
  comm::sender_lists lists;
  receiving_grid receiving;

  [[nodiscard]] UNTAX_HOST_DEVICE bool dry() const { return moved.run.launch < 0; }
};

}  // namespace untax
