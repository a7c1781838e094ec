#pragma once

#include <cstdint>

#include <untax/core/host_device.hpp>
#include <untax/flow/room.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/shard.hpp>

namespace untax {

/// A chunk of the rank's own shard.
struct outgoing_chunk {
  int turn = 0;  ///< its number among those that go out
  int index = 0;
  int row = 0;  ///< in the shard, like the next one
  int column = 0;
  int rows = 0;
  int columns = 0;
};

/// What a sender of `all_gather_gemm_protocol::push` sends, as plain numbers: the protocol computes
/// in 64 bits, step by step, which takes a GPU as long as moving a chunk does.
struct sending_grid {
  bool counted = true;   ///< readers say that they have read, see `counts_readers`
  bool at_once = false;  ///< a chunk goes to all peers before the next one does
  int raster_rows = 1;   ///< chunks, one below the other, that go out column by column
  int k_interleave = 1;  ///< in a row, whose chunks take turns
  int first_hop = 1;
  int hops = 0;
  int rows = 0;  ///< of the shard
  int columns = 0;
  int chunk_rows = 1;
  int chunk_columns = 1;
  int row_chunks = 0;  ///< one below the other
  int in_row = 0;      ///< side by side
  int inbox_row = 0;   ///< of the shard in everybody's inbox, in set 0
  int inbox_column = 0;
  int set_rows = 0;  ///< of the inbox
  int ready = 0;     ///< counter of the first chunk at every consumer, in set 0
  int ready_set = 0;
  int free = 0;  ///< counter of rank 0 as a consumer, at this rank, in set 0
  int free_set = 0;

  template <class Layout>
  [[nodiscard]] static constexpr sending_grid of(const Layout& how) noexcept {
    const int me = how.rank();
    const range shard = how.shard(me);
    const pieces down = how.row_chunks(me);
    const pieces across = how.col_chunks(me);
    sending_grid grid;
    grid.counted = how.counts_readers();
    grid.at_once = how.fans_out();
    grid.raster_rows = how.raster_rows(me);
    grid.k_interleave = how.k_interleave(me);
    grid.first_hop = how.first_hop();
    grid.hops = how.world() - how.first_hop();
    grid.rows = static_cast<int>(down.whole.size);
    grid.columns = static_cast<int>(across.whole.size);
    grid.chunk_rows = static_cast<int>(down.step);
    grid.chunk_columns = static_cast<int>(across.step);
    grid.row_chunks = down.count();
    grid.in_row = across.count();
    grid.inbox_row = static_cast<int>(how.by_rows() ? shard.begin : 0);
    grid.inbox_column = static_cast<int>(how.by_rows() ? 0 : shard.begin);
    grid.set_rows = static_cast<int>(how.inbox().rows / how.sets().sets);
    grid.ready = how.ready_counter(0, me, 0);
    grid.ready_set = how.ready_counter(1, me, 0) - grid.ready;
    grid.free = how.free_counter(0, 0);
    grid.free_set = how.free_counter(1, 0) - grid.free;
    return grid;
  }

  /// The chunks that fall to a sender: how many there are, and the first of them.
  struct part {
    constexpr part() noexcept = default;  // not an aggregate, so {a, b} does not convert

    strided share;
    int chunks = 0;
    outgoing_chunk first;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr part part_of(strided share) const noexcept {
    part mine;
    mine.share = share;
    mine.chunks = share.share_of(row_chunks * in_row);
    if (mine.chunks > 0) mine.first = chunk_in_turn(share.at(0));
    return mine;
  }
  /// Calls `send(chunk, hop, hops)`, with the first of so many neighbouring hops, for everything
  /// that falls to a sender.
  UNTAX_CALLS_ANY_SIDE
  template <class Send>
  UNTAX_HOST_DEVICE constexpr void each(strided share, Send&& send) const {
    each(part_of(share), send);
  }
  /// The same, where the first chunk is known already.
  UNTAX_CALLS_ANY_SIDE
  template <class Send>
  UNTAX_HOST_DEVICE constexpr void each(const part& mine, Send&& send) const {
    for (int round = 0; round < rounds(); ++round) {
      for (int i = 0; i < mine.chunks; ++i)
        send(i == 0 ? mine.first : chunk_in_turn(mine.share.at(i)), first_hop + round,
             hops_together());
    }
  }
  /// What a sender sends when its turn comes: the same, by number.
  struct sent_chunk {
    outgoing_chunk chunk;
    int hop = 0;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turns(strided share) const noexcept {
    return rounds() * share.share_of(row_chunks * in_row);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr sent_chunk turn(strided share, int i) const noexcept {
    const int mine = share.share_of(row_chunks * in_row);
    const int round = i / mine;
    return {chunk_in_turn(share.at(i - round * mine)), first_hop + round};
  }
  /// How many peers a chunk goes to in one turn.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int hops_together() const noexcept {
    return at_once || hops == 0 ? hops : 1;
  }
  /// What goes out before a chunk does so many hops away, whole chunks, by all senders.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t bytes_before(const outgoing_chunk& p,
                                                                       int hop) const noexcept {
    const int turn = at_once ? p.turn * hops : (hop - first_hop) * row_chunks * in_row + p.turn;
    return std::uint64_t{tma_tile_bytes()} * static_cast<unsigned>(turn);
  }
  /// Of a whole chunk, also where one ends with the shard.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t tma_tile_bytes() const noexcept {
    return static_cast<std::uint32_t>(chunk_rows * chunk_columns * 2);
  }

  /// The room of a chunk in the inbox of `consumer`. The producer is left out: it is who asks.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr room inbox_room(int set, int consumer, int index,
                                                            std::uint64_t use) const noexcept {
    room r;
    r.consumer = consumer;
    r.number = ready_counter(set, 0);
    r.ready = ready_counter(set, index);
    r.free = free_counter(set, consumer);
    r.use = use;
    return r;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int ready_counter(int set, int index) const noexcept {
    return ready + set * ready_set + index;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int free_counter(int set, int peer) const noexcept {
    return free + set * free_set + peer;
  }

 private:
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int rounds() const noexcept {
    return at_once && hops > 0 ? 1 : hops;
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr outgoing_chunk chunk_in_turn(int i) const noexcept {
    const auto at = raster_grid{row_chunks, in_row, raster_rows, k_interleave}.at(i);
    outgoing_chunk p;
    p.turn = i;
    p.index = at.row * in_row + at.column;
    p.row = at.row * chunk_rows;
    p.column = at.column * chunk_columns;
    p.rows = rows - p.row < chunk_rows ? rows - p.row : chunk_rows;
    p.columns = columns - p.column < chunk_columns ? columns - p.column : chunk_columns;
    return p;
  }
};

}  // namespace untax
