// The order of receivers, the tiles of a worker, and the places of rooms, compared with their
// comments, for every small case.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <untax/flow/room.hpp>
#include <untax/tile/barrier_steps.hpp>
#include <untax/tile/counter_layout.hpp>
#include <untax/tile/order.hpp>
#include <untax/tile/program.hpp>
#include <untax/tile/shard.hpp>
#include <untax/tile/tile_ring.hpp>

namespace untax {
namespace {

TEST(hops, give_each_link_one_stream) {
  for (int world = 1; world <= 9; ++world) {
    for (int hop = 0; hop < world; ++hop) {
      std::set<int> receivers;
      for (int rank = 0; rank < world; ++rank) {
        const int to = receiver_at_hop(rank, hop, world);
        EXPECT_EQ(to, rank + hop < world ? rank + hop : rank + hop - world);
        EXPECT_EQ(source_at_hop(to, hop, world), rank);
        receivers.insert(to);
      }
      EXPECT_EQ(receivers.size(), static_cast<std::size_t>(world));
    }
  }
}

TEST(strided, deals_everything_in_turn) {
  for (int workers = 1; workers <= 7; ++workers) {
    for (int count = 0; count <= 40; ++count) {
      std::vector<int> owner(static_cast<std::size_t>(count), -1);
      for (int worker = 0; worker < workers; ++worker) {
        const strided mine{worker, workers};
        int visited = 0;
        mine.each(count, [&](int i) {
          EXPECT_EQ(i, mine.at(visited++));
          EXPECT_EQ(owner.at(static_cast<std::size_t>(i)), -1);
          owner[static_cast<std::size_t>(i)] = worker;
        });
        EXPECT_EQ(visited, mine.share_of(count)) << worker << " of " << workers << ", " << count;
      }
      for (int i = 0; i < count; ++i) EXPECT_EQ(owner[static_cast<std::size_t>(i)], i % workers);
    }
  }
}

TEST(pieces, cover_their_range_in_order) {
  for (std::int64_t size = 0; size <= 40; ++size) {
    for (std::int64_t step = 1; step <= 12; ++step) {
      const pieces cut{{5, size}, step};
      EXPECT_EQ(cut.count(), static_cast<int>((size + step - 1) / step));
      std::int64_t next = 5;
      for (int i = 0; i < cut.count(); ++i) {
        EXPECT_EQ(cut.at(i).begin, next);
        EXPECT_EQ(cut.at(i).size, i + 1 < cut.count() ? step : size - i * step);
        next = cut.at(i).end();
      }
      EXPECT_EQ(next, 5 + size);
    }
  }
  EXPECT_TRUE((range{3, 0}.empty()));
  EXPECT_FALSE((range{0, 1}.empty()));
  EXPECT_EQ(smaller(2, 3), 2);
  EXPECT_EQ(smaller(3, 2), 2);
}

TEST(tile_grid, goes_down_the_rows_first) {
  const tile_grid grid{{{0, 70}, 32}, {{100, 90}, 16}};
  ASSERT_EQ(grid.count(), 3 * 6);
  for (int tile = 0; tile < grid.count(); ++tile) {
    const range rows = grid.rows_of(tile);
    const range cols = grid.cols_of(tile);
    EXPECT_EQ(rows.begin, tile % 3 * 32);
    EXPECT_EQ(rows.size, tile % 3 == 2 ? 6 : 32);
    EXPECT_EQ(cols.begin, 100 + tile / 3 * 16);
    EXPECT_EQ(cols.size, tile / 3 == 5 ? 10 : 16);
  }
}

// Written down again as loops.
std::vector<std::pair<int, int>> raster_groups_of(const raster_grid& g) {
  std::vector<std::pair<int, int>> order;
  for (int first = 0; first < g.down; first += g.raster_rows) {
    for (int turn = 0; turn < g.across; ++turn) {
      const int column =
          turn % g.k_interleave * (g.across / g.k_interleave) + turn / g.k_interleave;
      for (int row = first; row < std::min(g.down, first + g.raster_rows); ++row)
        order.emplace_back(row, column);
    }
  }
  return order;
}

TEST(raster_grid, goes_raster_rows_by_raster_rows_and_column_by_column) {
  for (int down = 1; down <= 9; ++down) {
    for (int across = 1; across <= 12; ++across) {
      for (int raster_rows = 1; raster_rows <= down; ++raster_rows) {
        for (int k_interleave = 1; k_interleave <= across; ++k_interleave) {
          if (across % k_interleave != 0) continue;
          const raster_grid grid{down, across, raster_rows, k_interleave};
          const auto expected = raster_groups_of(grid);
          for (int turn = 0; turn < down * across; ++turn) {
            const auto [row, column] = grid.at(turn);
            EXPECT_EQ(std::pair(row, column), expected[static_cast<std::size_t>(turn)])
                << down << " x " << across << ", raster groups of " << raster_rows
                << ", k_interleave " << k_interleave << ", turn " << turn;
          }
        }
      }
    }
  }
}

TEST(counters, of_all_blocks_are_apart_and_dense) {
  counter_layout layout;
  std::set<int> seen;
  int planes = 1;
  for (const auto& [rows, cols] :
       {std::pair(3, 2), std::pair(1, 5), std::pair(4, 1), std::pair(0, 3)}) {
    const int before = layout.size();
    const counter_block block = layout.take(planes, rows, cols);
    EXPECT_EQ(layout.size(), before + planes * rows * cols);
    for (int plane = 0; plane < planes; ++plane) {
      for (int row = 0; row < rows; ++row) {
        EXPECT_EQ(block.at(plane, row), block.at(plane, row, 0));
        for (int col = 0; col < cols; ++col)
          EXPECT_TRUE(seen.insert(block.at(plane, row, col)).second);
      }
    }
    ++planes;
  }
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(layout.size()));
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), layout.size() - 1);
}

TEST(rooms, of_all_sets_are_used_in_turn) {
  for (int sets = 1; sets <= 5; ++sets) {
    const room_sets sets_of_rooms{sets};
    std::map<int, std::uint64_t> uses;
    for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
      const int set = sets_of_rooms.set_of(epoch);
      EXPECT_EQ(set, static_cast<int>((epoch - 1) % static_cast<std::uint64_t>(sets)));
      EXPECT_EQ(sets_of_rooms.use_of(epoch), ++uses[set]);
    }
  }
  EXPECT_EQ(room_sets{}.sets, 2);
}

TEST(rooms, are_free_credit_uses_ahead) {
  for (std::uint64_t use = 0; use < 6; ++use) {
    for (std::uint64_t credit = 0; credit < 3; ++credit) {
      room r;
      r.use = use;
      r.credit = credit;
      EXPECT_EQ(r.needed_free(), use > credit ? use - credit : 0);
    }
  }
  // The default room: unnamed, a flag, free before its first use, of one reader.
  const room r;
  EXPECT_FALSE(r.named());
  EXPECT_EQ(r.producer, -1);
  EXPECT_EQ(r.consumer, -1);
  EXPECT_EQ(r.ready, -1);
  EXPECT_EQ(r.free, -1);
  EXPECT_EQ(r.readers, 1);
  EXPECT_EQ(r.use, 0U);
  EXPECT_EQ(r.credit, 1U);
  EXPECT_TRUE((room{.number = 0}.named()));
}

TEST(barrier_steps, signal_all_then_wait_for_all) {
  for (int world = 1; world <= 5; ++world) {
    counter_layout layout;
    (void)layout.take(1, 1, 3);
    const counter_block flags = layout.take(1, world, 1);
    for (int rank = 0; rank < world; ++rank) {
      std::vector<step> steps;
      barrier_steps{rank, world, flags}.program(7, [&](const step& s) { steps.push_back(s); });
      ASSERT_EQ(steps.size(), static_cast<std::size_t>(2 * (world - 1)));
      std::set<int> told;
      std::set<int> heard;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool says = i < steps.size() / 2;
        const room& flag = says ? steps[i].publish : steps[i].acquire;
        EXPECT_EQ(steps[i].publish.named(), says);
        EXPECT_EQ(steps[i].acquire.named(), !says);
        EXPECT_EQ(steps[i].what, action::none);
        EXPECT_EQ(says ? flag.producer : flag.consumer, rank);
        EXPECT_EQ(flag.ready, 3 + flag.producer);
        EXPECT_EQ(flag.number, flag.ready);
        EXPECT_EQ(flag.free, -1);
        EXPECT_EQ(flag.use, 7U);
        EXPECT_TRUE((says ? told : heard).insert(says ? flag.consumer : flag.producer).second);
      }
      EXPECT_EQ(told, heard);
      EXPECT_FALSE(told.contains(rank));
    }
  }
}

TEST(tile_ring, counts_the_uses_of_each_room) {
  for (int count = 0; count <= 7; ++count) {
    counter_layout layout;
    const counter_block full = layout.take(1, 3, tile_ring::depth);
    const counter_block empty = layout.take(1, 3, tile_ring::depth);
    const tile_ring ring{.rank = 2,
                         .workers = 3,
                         .senders = 2,
                         .tile_m = 16,
                         .tile_n = 8,
                         .full = full,
                         .empty = empty};
    EXPECT_EQ(ring.rows(), 3 * 2 * 16);
    EXPECT_EQ(ring.cols(), 8);
    std::map<int, std::uint64_t> uses;
    std::set<std::int64_t> places;
    for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
      for (int worker = 0; worker < 3; ++worker) {
        for (int index = 0; index < count; ++index) {
          const room r = ring.at(worker, index, count, epoch);
          EXPECT_EQ(r.producer, 2);
          EXPECT_EQ(r.consumer, 2);
          EXPECT_EQ(r.ready, full.at(0, worker, index % 2));
          EXPECT_EQ(r.number, r.ready);
          EXPECT_EQ(r.free, empty.at(0, worker, index % 2));
          EXPECT_EQ(r.use, ++uses[r.ready]) << "tile " << index << " of " << count;
          const place at = ring.place_of(worker, index);
          EXPECT_EQ(at.of, operand::outbox);
          EXPECT_EQ(at.rank, 2);
          EXPECT_EQ(at.col, 0);
          EXPECT_EQ(at.row, (worker * 2 + index % 2) * 16);
          EXPECT_LE(at.row + 16, ring.rows());
          places.insert(at.row);
        }
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(3 * std::min(count, 2)));
  }
}

TEST(tile_ring, senders_take_the_tiles_of_their_workers_in_order) {
  for (int workers = 1; workers <= 5; ++workers) {
    for (int senders = 1; senders <= 3; ++senders) {
      const auto count_of = [&](int worker) { return (worker * 3 + 1) % 4; };
      std::map<int, int> next;
      std::map<int, int> sender_of;
      for (int sender = 0; sender < senders; ++sender) {
        const tile_ring ring{.workers = workers, .senders = senders, .full = {}, .empty = {}};
        int last_index = 0;
        ring.each(sender, count_of, [&](int worker, int index) {
          EXPECT_EQ(index, next[worker]++);
          EXPECT_GE(index, last_index);
          last_index = index;
          EXPECT_EQ(sender_of.try_emplace(worker, sender).first->second, sender);
        });
      }
      for (int worker = 0; worker < workers; ++worker)
        EXPECT_EQ(next[worker], count_of(worker))
            << workers << " workers, " << senders << " senders";
    }
  }
}

TEST(reduce, finds_the_contribution_of_each_rank) {
  step s{.what = action::reduce,
         .rows = 3,
         .from = {operand::inbox, 1, 10, 4},
         .weights = {operand::a, 1, 6, 7}};
  for (std::int64_t i = 0; i < 4; ++i) {
    const place at = addend(s, i);
    EXPECT_EQ(at.of, i == 1 ? operand::a : operand::inbox);
    EXPECT_EQ(at.rank, 1);
    EXPECT_EQ(at.row, i == 1 ? 6 : 10 + 3 * i);
    EXPECT_EQ(at.col, i == 1 ? 7 : 4);
  }
  s.from.of = operand::a;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(addend(s, i).rank, i);
    EXPECT_EQ(addend(s, i).row, 10);
    EXPECT_EQ(addend(s, i).col, 4);
  }
  s.to = {operand::c, 0, 5, 6};
  for (int i = 0; i < 4; ++i) {
    const place to = target(s, i);
    EXPECT_EQ(to.rank, i);
    EXPECT_EQ(to.of, operand::c);
    EXPECT_EQ(to.row, 5);
    EXPECT_EQ(to.col, 6);
  }
}

// Every answer is another number.
struct numbered_protocol {
  [[nodiscard]] static int rank() { return 1; }
  [[nodiscard]] static int world() { return 2; }
  [[nodiscard]] static int kernels() { return 3; }
  [[nodiscard]] static kernel kernel_at(int i) { return {"k", 10 + i, 20 + i}; }
  [[nodiscard]] static int counters() { return 4; }
  [[nodiscard]] static extent inbox() { return {5, 6}; }
  [[nodiscard]] static extent outbox() { return {7, 8}; }
  [[nodiscard]] static extent tile_extent() { return {9, 10}; }
  template <class Emit>
  static void program(int i, int worker, std::uint64_t epoch, Emit&& emit) {
    emit(step{.rows = i, .cols = worker, .depth = static_cast<std::int64_t>(epoch)});
  }
};

TEST(program, forwards_to_its_protocol) {
  const program p{numbered_protocol()};
  EXPECT_EQ(p.rank(), 1);
  EXPECT_EQ(p.world(), 2);
  EXPECT_EQ(p.kernels(), 3);
  EXPECT_EQ(p.counters(), 4);
  EXPECT_EQ(p.kernel_at(2).stage, 12);
  EXPECT_EQ(p.kernel_at(2).workers, 22);
  EXPECT_EQ(std::tuple(p.inbox().rows, p.inbox().cols), std::tuple(5, 6));
  EXPECT_EQ(std::tuple(p.outbox().rows, p.outbox().cols), std::tuple(7, 8));
  EXPECT_EQ(std::tuple(p.tile_extent().rows, p.tile_extent().cols), std::tuple(9, 10));
  int emitted = 0;
  p.steps(11, 12, 13, [&](const step& s) {
    EXPECT_EQ(std::tuple(s.rows, s.cols, s.depth), std::tuple(11, 12, 13));
    ++emitted;
  });
  EXPECT_EQ(emitted, 1);
}

}  // namespace
}  // namespace untax
