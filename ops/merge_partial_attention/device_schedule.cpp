#include "ops/merge_partial_attention/device_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/order.hpp>

#include "ops/merge_partial_attention/planning.hpp"
#include "ops/merge_partial_attention/spec.hpp"
#include "ops/plan_check/check.hpp"

namespace untax {
/// Chunks of one row that a warp takes in one turn.
struct merge_model::segment {
  int turn = 0;
  int row = 0;  ///< among the rows of the owner
  int token = 0;
  int head = 0;   ///< of all heads
  int begin = 0;  ///< its first chunk in the row
  int size = 0;

  /// The number of the segment: from one segment to the next, the row or the turn changes.
  [[nodiscard]] int number() const { return row + turn; }
};

/// The parts of an owner's rows that a block has, in the order of the block.
template <class Visit>
void merge_model::each_segment(int owner, int block, const Visit& visit) const {
  for (int turn = block; turn < how().turns_of(owner); turn += plan.blocks) {
    const int end = std::min((turn + 1) * gpu::merge_rows::lanes, how().chunks_of(owner));
    for (int i = turn * gpu::merge_rows::lanes; i < end;) {
      const auto c = how().chunk_of(owner, i);
      const int size = std::min(end - i, how().row_chunks - c.at);
      visit(segment{turn, c.owner_row, c.token, c.head, c.at, size});
      i += size;
    }
  }
}

std::vector<std::string> merge_model::faults() const {
  std::vector<std::string> texts;
  for (int owner = 0; owner < how().ranks && texts.empty(); ++owner) {
    std::vector<int> takers(static_cast<std::size_t>(how().chunks_of(owner)));
    for (int block = 0; block < plan.blocks; ++block) {
      each_segment(owner, block, [&](const segment& s) {
        const std::int64_t before = std::int64_t{s.row} * how().row_chunks;
        for (int at = s.begin; at < s.begin + s.size; ++at)
          ++takers[static_cast<std::size_t>(before + at)];
      });
    }
    const auto wrong = std::ranges::find_if(takers, [](int times) { return times != 1; });
    if (wrong != takers.end())
      texts.push_back(fmt::format("chunk {} of rank {} is taken {} times instead of once",
                                  wrong - takers.begin(), owner, *wrong));
    if (how().rows_of(owner) > how().slab_rows)
      texts.push_back(fmt::format("rank {} has {} rows; a slab has room for {}", owner,
                                  how().rows_of(owner), how().slab_rows));
  }
  return texts;
}

schedule::operand_extents merge_model::operands() const {
  const std::int64_t width = how().row_chunks + 1;
  return {{how().tokens, how().heads * width},
          {},
          {how().tokens, how().heads_of(how().own_rank) * width}};
}

/// The counters of a slab: of its segments, then of the statistics of its rows.
int merge_model::slab_counters() const {
  const int turns =
      (how().slab_rows * how().row_chunks + gpu::merge_rows::lanes - 1) / gpu::merge_rows::lanes;
  return 2 * how().slab_rows + turns;
}
int merge_model::statistic_number(int row) const { return slab_counters() - how().slab_rows + row; }
/// In the kernel words and packets are their own signals. Here a counter of each segment, and of
/// each statistic, stands for them.
room merge_model::slot(int source, int owner, int number, std::uint64_t epoch) const {
  room r = how().slab(source, owner, epoch);
  r.ready = how().counters() + how().slab_of(source, epoch) * slab_counters() + number;
  r.number = r.ready;
  return r;
}
/// The input of this rank for a segment's row, from a column on.
place merge_model::given(const segment& s, std::int64_t col) const {
  return {operand::a, how().rank(), s.token, s.head * (how().row_chunks + std::int64_t{1}) + col};
}
place merge_model::in_inbox(int source, int owner, int row, std::int64_t col,
                            std::uint64_t epoch) const {
  return {operand::inbox, owner, std::int64_t{how().slab_of(source, epoch)} * how().slab_rows + row,
          col};
}

/// Sends segments to the ranks that merge them, the next rank first.
void merge_model::send(int block, std::uint64_t epoch, const program::sink& emit) const {
  const int rank = how().rank();
  for (int hop = 1; hop < how().world(); ++hop) {
    const int owner = receiver_at_hop(rank, hop, how().world());
    const auto put = [&](const segment& s, int col, int cols, int number) {
      const room filled = slot(rank, owner, number, epoch);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = cols,
                .from = given(s, col),
                .to = in_inbox(rank, owner, s.row, col, epoch),
                .reserve = reserves ? filled : room{},
                .publish = filled});
    };
    each_segment(owner, block, [&](const segment& s) {
      put(s, s.begin, s.size, s.number());
      if (s.begin == 0) put(s, how().row_chunks, 1, statistic_number(s.row));
    });
  }
}

/// Takes the statistics of all ranks, then the chunks, which the statistics weight.
void merge_model::take(int block, std::uint64_t epoch, const program::sink& emit) const {
  each_segment(how().rank(), block, [&](const segment& s) {
    const int statistic = how().row_chunks;
    add(s, {statistic, 1}, awaits_statistics ? statistic_number(s.row) : -1, epoch, emit);
    if (s.begin == 0) store(s, {statistic, 1}, emit);
    add(s, {s.begin, s.size}, s.number(), epoch, emit);
    store(s, {s.begin, s.size}, emit);
  });
}

/// Adds some columns of a row of all ranks. `number`: the counter to wait for; -1: none.
void merge_model::add(const segment& s, const range& cols, int number, std::uint64_t epoch,
                      const program::sink& emit) const {
  const int rank = how().rank();
  const auto from = [&](int source) {
    return source == rank ? given(s, cols.begin) : in_inbox(source, rank, s.row, cols.begin, epoch);
  };
  const auto arrival = [&](int source) {
    return source != rank && number >= 0 ? slot(source, rank, number, epoch) : room{};
  };
  how().add(1, cols.size, from, arrival, emit);
}
void merge_model::store(const segment& s, const range& cols, const program::sink& emit) const {
  const std::int64_t head = s.head - how().first_head(how().rank());
  emit(step{.what = action::store,
            .rows = 1,
            .cols = cols.size,
            .from = {operand::sum, how().rank(), 0, 0},
            .to = {operand::c, how().rank(), s.token, head * (how().row_chunks + 1) + cols.begin}});
}

/// The steps of the last block.
void merge_model::finish(std::uint64_t epoch, const program::sink& emit) const {
  how().retire_slabs(epoch, 0, emit);
}

schedule::lane_program merge_model::lanes() const {
  const std::int64_t slabs = std::int64_t{sets()} * how().world();
  schedule::lane_program all({how().rank(),
                              how().world(),
                              how().counters() + static_cast<int>(slabs) * slab_counters(),
                              {slabs * how().slab_rows, how().row_chunks + 1},
                              {},
                              {1, how().row_chunks + 1}});
  all.begin_kernel(merge_partial_attention_name.data(), 0, schedule::lane_work::adds);
  const auto block = [this](int number, std::uint64_t epoch, const program::sink& emit) {
    send(number, epoch, emit);
    take(number, epoch, emit);
  };
  const std::vector<int> merged = all.add_each(plan.blocks, block);
  all.add(merged, [this](std::uint64_t epoch, const program::sink& emit) { finish(epoch, emit); });
  return all;
}

device_findings spec_of<merge_partial_attention>::check_on_gpus(const problem& p, int ranks,
                                                                const options& o,
                                                                int multiprocessors) {
  return plan_check::check(ranks, [&](int rank) {
    const int blocks = plan_merge_on_gpus(ranks, rank, p, o).plan.workers;
    return merge_model(merge_grid_of(p, ranks, rank, blocks, multiprocessors));
  });
}

}  // namespace untax
