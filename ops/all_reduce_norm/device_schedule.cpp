#include "ops/all_reduce_norm/device_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/order.hpp>

#include "ops/all_reduce_norm/planning.hpp"
#include "ops/all_reduce_norm/spec.hpp"
#include "ops/plan_check/check.hpp"

namespace untax {

std::vector<std::string> norm_model::faults() const {
  std::vector<int> adders(static_cast<std::size_t>(how().tokens));
  for (int owner = 0; owner < how().world(); ++owner) {
    for (int row = how().first_row(owner); row < how().end_row(owner); ++row)
      ++adders[static_cast<std::size_t>(row)];
  }
  const int wanted = how().passes_on ? 1 : how().world();
  std::vector<std::string> texts;
  for (std::size_t row = 0; row < adders.size() && texts.empty(); ++row) {
    if (adders[row] != wanted)
      texts.push_back(
          fmt::format("row {} is added by {} ranks instead of {}", row, adders[row], wanted));
  }
  return texts;
}

schedule::operand_extents norm_model::operands() const {
  const extent rows{how().tokens, how().hidden};
  return {rows, {}, {rows.rows, 2 * rows.cols}};
}

/// In the kernel each word is its own signal. Here a counter of each row stands for the words.
room norm_model::slot(int source, int owner, int row, std::uint64_t epoch) const {
  room r = how().slab(source, owner, epoch);
  r.ready = how().counters() + how().slab_of(source, epoch) * how().slab_rows + row -
            how().first_row(owner);
  r.number = r.ready;
  return r;
}
place norm_model::in_inbox(int source, int owner, int row, std::uint64_t epoch) const {
  const std::int64_t at = how().place_of(source, owner, row, epoch);
  return {operand::inbox, owner, at / how().hidden, at % how().hidden};
}

/// Sends rows of the rank's input to the ranks that add them, the next rank first.
void norm_model::send(int block, std::uint64_t epoch, const program::sink& emit) const {
  how().each_peer([&](int owner) {
    for (int row = how().first_row(owner) + block; row < how().end_row(owner);
         row += plan.workers()) {
      const room filled = slot(how().rank(), owner, row, epoch);
      emit(step{.what = action::copy,
                .rows = 1,
                .cols = how().hidden,
                .from = {operand::a, how().rank(), row, 0},
                .to = in_inbox(how().rank(), owner, row, epoch),
                .reserve = reserves && how().reserves() ? filled : room{},
                .publish = filled});
    }
  });
}

void norm_model::take(int row, std::uint64_t epoch, const program::sink& emit) const {
  const int rank = how().rank();
  const auto from = [&](int source) {
    return source == rank ? place{operand::a, rank, row, 0} : in_inbox(source, rank, row, epoch);
  };
  const auto arrival = [&](int source) {
    return source == rank ? room{} : slot(source, rank, row, epoch);
  };
  how().add(1, how().hidden, from, arrival, emit);
  emit(step{.what = action::normalise,
            .rows = 1,
            .cols = how().hidden,
            .depth = how().world(),
            .from = {operand::sum, rank, 0, 0},
            .to = {operand::c, rank, row, 0},
            .everywhere = how().passes_on});
}

/// The steps of the block that ends last.
void norm_model::finish(std::uint64_t epoch, const program::sink& emit) const {
  if (!how().reserves()) return;
  how().retire_slabs(epoch, 0, emit);
  if (how().passes_on && closes)
    how().close_sums(
        epoch, 0, [](int) { return true; }, emit);
}

schedule::lane_program norm_model::lanes() const {
  const std::int64_t slabs = std::int64_t{sets()} * how().world();
  schedule::lane_program all({how().rank(),
                              how().world(),
                              how().counters() + static_cast<int>(slabs) * how().slab_rows,
                              {slabs * how().slab_rows, how().hidden},
                              {},
                              {1, how().hidden}});
  all.begin_kernel(all_reduce_norm_name.data(), 0, schedule::lane_work::adds);
  const auto block = [this](int number, std::uint64_t epoch, const program::sink& emit) {
    send(number, epoch, emit);
    for (int row = how().first_row(how().rank()) + number; row < how().end_row(how().rank());
         row += plan.workers())
      take(row, epoch, emit);
  };
  const std::vector<int> added = all.add_each(plan.workers(), block);
  all.add(added, [this](std::uint64_t epoch, const program::sink& emit) { finish(epoch, emit); });
  return all;
}

device_findings spec_of<all_reduce_norm>::check_on_gpus(const problem& p, int ranks,
                                                        const options& o, int multiprocessors) {
  return plan_check::check(ranks, [&](int rank) {
    const int phases = plan_norm_on_gpus(ranks, rank, p, o).plan.phases;
    return norm_model(norm_plan_of(p, ranks, rank, phases, multiprocessors));
  });
}

}  // namespace untax
