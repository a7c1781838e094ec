#pragma once

#include <cstdint>

#include "ops/all_gather_gemm/layout.hpp"

namespace untax {

/// A piece of the rank's own shard.
struct outgoing_piece {
  int turn = 0;  ///< its number among those that go out
  int index = 0;
  int row = 0;  ///< in the shard, like the next one
  int column = 0;
  int rows = 0;
  int columns = 0;
};

/// What a mover of `all_gather_gemm_protocol::push` sends, as plain numbers: the protocol computes
/// in 64 bits, step by step, which takes a GPU as long as moving a piece does.
struct sending_grid {
  bool counted = true;   ///< readers say that they have read, see `counts_readers`
  bool at_once = false;  ///< a piece goes to all peers before the next one does
  int band = 1;          ///< pieces, one below the other, that go out column by column
  int starts = 1;        ///< in a row, whose pieces take turns
  int first_hop = 1;
  int hops = 0;
  int rows = 0;  ///< of the shard
  int columns = 0;
  int piece_rows = 1;
  int piece_columns = 1;
  int row_pieces = 0;  ///< one below the other
  int in_row = 0;      ///< side by side
  int inbox_row = 0;   ///< of the shard in everybody's inbox, in set 0
  int inbox_column = 0;
  int set_rows = 0;  ///< of the inbox
  int ready = 0;     ///< counter of the first piece at every consumer, in set 0
  int ready_set = 0;
  int free = 0;  ///< counter of rank 0 as a consumer, at this rank, in set 0
  int free_set = 0;

  [[nodiscard]] static constexpr sending_grid of(const all_gather_gemm_layout& how) noexcept {
    const int me = how.rank();
    const range shard = how.shard(me);
    const pieces down = how.row_pieces(me);
    const pieces across = how.col_pieces(me);
    sending_grid grid;
    grid.counted = how.counts_readers();
    grid.at_once = how.spreads();
    grid.band = how.band(me);
    grid.starts = how.starts(me);
    grid.first_hop = how.first_hop();
    grid.hops = how.world() - how.first_hop();
    grid.rows = static_cast<int>(down.whole.size);
    grid.columns = static_cast<int>(across.whole.size);
    grid.piece_rows = static_cast<int>(down.step);
    grid.piece_columns = static_cast<int>(across.step);
    grid.row_pieces = down.count();
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

  /// The pieces that fall to a mover: how many there are, and the first of them.
  struct part {
    constexpr part() noexcept = default;  // so that a list of two numbers is none

    strided share;
    int pieces = 0;
    outgoing_piece first;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr part part_of(strided share) const noexcept {
    part mine;
    mine.share = share;
    mine.pieces = share.share_of(row_pieces * in_row);
    if (mine.pieces > 0) mine.first = piece_in_turn(share.at(0));
    return mine;
  }
  /// Calls `send(piece, hop, hops)`, with the first of so many neighbouring hops, for everything
  /// that falls to a mover.
  UNTAX_CALLS_ANY_SIDE
  template <class Send>
  UNTAX_HOST_DEVICE constexpr void each(strided share, Send&& send) const {
    each(part_of(share), send);
  }
  /// The same, where the first piece is known already.
  UNTAX_CALLS_ANY_SIDE
  template <class Send>
  UNTAX_HOST_DEVICE constexpr void each(const part& mine, Send&& send) const {
    for (int round = 0; round < rounds(); ++round) {
      for (int i = 0; i < mine.pieces; ++i)
        send(i == 0 ? mine.first : piece_in_turn(mine.share.at(i)), first_hop + round,
             hops_together());
    }
  }
  /// What a mover sends when its turn comes: the same, by number.
  struct sent_piece {
    outgoing_piece piece;
    int hop = 0;
  };
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int turns(strided share) const noexcept {
    return rounds() * share.share_of(row_pieces * in_row);
  }
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr sent_piece turn(strided share, int i) const noexcept {
    const int mine = share.share_of(row_pieces * in_row);
    const int round = i / mine;
    return {piece_in_turn(share.at(i - round * mine)), first_hop + round};
  }
  /// How many peers a piece goes to in one turn.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr int hops_together() const noexcept {
    return at_once || hops == 0 ? hops : 1;
  }
  /// What goes out before a piece does so many hops away, whole pieces, by all movers.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint64_t bytes_before(const outgoing_piece& p,
                                                                       int hop) const noexcept {
    const int turn = at_once ? p.turn * hops : (hop - first_hop) * row_pieces * in_row + p.turn;
    return std::uint64_t{box_bytes()} * static_cast<unsigned>(turn);
  }
  /// Of a whole piece, also where one ends with the shard.
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr std::uint32_t box_bytes() const noexcept {
    return static_cast<std::uint32_t>(piece_rows * piece_columns * 2);
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
  [[nodiscard]] UNTAX_HOST_DEVICE constexpr outgoing_piece piece_in_turn(int i) const noexcept {
    const auto at = banded_grid{row_pieces, in_row, band, starts}.at(i);
    outgoing_piece p;
    p.turn = i;
    p.index = at.row * in_row + at.column;
    p.row = at.row * piece_rows;
    p.column = at.column * piece_columns;
    p.rows = rows - p.row < piece_rows ? rows - p.row : piece_rows;
    p.columns = columns - p.column < piece_columns ? columns - p.column : piece_columns;
    return p;
  }
};

}  // namespace untax
