#include "engines/schedule/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace untax::schedule {

rank_plan::rank_plan(const program& source, const operand_extents& operands, std::uint64_t epochs,
                     std::vector<extent> results)
    : rank_(source.rank()),
      world_(source.world()),
      counters_(source.counters()),
      epochs_(epochs),
      operands_(operands),
      results_(std::move(results)),
      inbox_(source.inbox()),
      outbox_(source.outbox()),
      tile_(source.tile_extent()) {
  std::map<int, std::vector<worker_name>> by_stage;
  first_worker_.push_back(0);
  for (int i = 0; i < source.kernels(); ++i) {
    const kernel k = source.kernel_at(i);
    kernels_.push_back(k);
    first_worker_.push_back(first_worker_.back() + k.workers);
    for (int worker = 0; worker < k.workers; ++worker) by_stage[k.stage].push_back({i, worker});
  }
  for (auto& [stage, workers] : by_stage) {
    lanes_ = std::max(lanes_, static_cast<int>(workers.size()));
    stages_.push_back(std::move(workers));
  }
  programs_.resize(static_cast<std::size_t>(first_worker_.back()) * epochs);
  for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
    for (const auto& stage : stages_) {
      for (const worker_name who : stage) {
        auto& steps_of_worker = steps(who, epoch);
        if (epoch > 1) steps_of_worker.reserve(steps(who, 1).size());
        source.steps(who.kernel, who.worker, epoch,
                     [&](const step& s) { steps_of_worker.push_back(s); });
      }
    }
  }
}

std::size_t rank_plan::index_of(worker_name who, std::uint64_t epoch) const {
  const auto workers = static_cast<std::size_t>(first_worker_.back());
  const int worker = first_worker_[static_cast<std::size_t>(who.kernel)] + who.worker;
  return (epoch - 1) * workers + static_cast<std::size_t>(worker);
}

extent rank_plan::extent_of(operand of) const noexcept {
  switch (of) {
    case operand::a:
      return operands_.a;
    case operand::b:
      return operands_.b;
    case operand::c:
      return operands_.c;
    case operand::inbox:
      return inbox_;
    case operand::outbox:
      return outbox_;
    default:
      return {};
  }
}

extent panel_extent(const rank_plan& plan) noexcept {
  return {plan.tile().rows, plan.extent_of(operand::b).cols};
}

const char* name_of(action what) noexcept {
  constexpr const char* names[] = {"only signals", "copy",   "multiply", "add",      "store",
                                   "reduce",       "attend", "merge",    "normalise"};
  return names[static_cast<std::size_t>(what)];
}

const char* name_of(operand role) noexcept {
  constexpr const char* names[] = {"nothing", "a",       "b",   "c",    "inbox",
                                   "outbox",  "product", "sum", "panel"};
  return names[static_cast<std::size_t>(role)];
}

std::string describe(const rank_plan& plan, const step_position& at) {
  const step& s = plan.steps(at.who, at.epoch)[static_cast<std::size_t>(at.index)];
  return fmt::format("rank {}, kernel {}, worker {}, epoch {}, step {} ({})", at.rank,
                     plan.kernels()[static_cast<std::size_t>(at.who.kernel)].name, at.who.worker,
                     at.epoch, at.index, name_of(s.what));
}

std::string describe(const room& r) {
  return fmt::format("room {} (rank {} to rank {}, use {})", r.number, r.producer, r.consumer,
                     r.use);
}

std::string describe(const place& at, std::int64_t rows, std::int64_t cols) {
  return fmt::format("{} of rank {}, rows {}..{}, columns {}..{}", name_of(at.of), at.rank, at.row,
                     at.row + rows - 1, at.col, at.col + cols - 1);
}

}  // namespace untax::schedule
