#include "engines/host/engine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

namespace untax::host {
namespace {

/// The kernels of one stage, as one numbering of workers.
struct stage_workers {
  const program* plan;
  int stage;

  [[nodiscard]] int count() const {
    int workers = 0;
    for (int k = 0; k < plan->kernels(); ++k) {
      if (plan->kernel_at(k).stage == stage) workers += plan->kernel_at(k).workers;
    }
    return workers;
  }
  /// (kernel, worker in it) of a worker of the stage.
  [[nodiscard]] std::pair<int, int> locate(int worker) const {
    int k = 0;
    for (;; ++k) {
      if (plan->kernel_at(k).stage != stage) continue;
      if (worker < plan->kernel_at(k).workers) return {k, worker};
      worker -= plan->kernel_at(k).workers;
    }
  }
};

/// How far a rank is that begins a stage of a run; its steps count on from there.
std::uint64_t progress_at(std::uint64_t run, int stage) {
  return run << 32U | static_cast<std::uint64_t>(stage) << 28U;
}

int stages_of(const program& p) { return p.kernel_at(p.kernels() - 1).stage + 1; }

}  // namespace

engine::engine(world& w, program p, engine_options options)
    : world_(&w), program_(std::move(p)), options_(std::move(options)) {
  if (w.memory() != memory_kind::host) {
    throw error(errc::unsupported,
                fmt::format("rank {}: {} computes on the host, and the heaps of this world are in "
                            "GPU memory; use a world of threads, or of processes with {}=host",
                            w.rank(), options_.operator_name, variable::memory.name));
  }
  inbox_ = allocate(program_.inbox(), options_.inbox_type, " inbox");
  outbox_ = allocate(program_.outbox(), options_.outbox_type, " outbox");
  const auto counters = static_cast<std::size_t>(std::max(program_.counters(), 1));
  counters_ =
      world_->allocate_cleared<std::uint64_t>(counters, options_.operator_name + " counters");

  int most = 1;
  for (int stage = 0; stage < stages_of(program_); ++stage)
    most = std::max(most, stage_workers{&program_, stage}.count());
  for (int i = 0; i < most; ++i) {
    workers_.emplace_back(options_.operator_name, counters_, world_->make_watch(i),
                          program_.tile_extent(), options_.faults.get());
  }
  team_ = std::make_unique<team>(most, options_.launch,
                                 fmt::format("rank {}: {}", w.rank(), options_.operator_name),
                                 [this](const error& e) { world_->fail(e.code(), e.what()); });
}

engine::memory engine::allocate(const extent& size, dtype type, const std::string& label) {
  const auto bytes = static_cast<std::size_t>(size.rows * size.cols) * size_of(type);
  if (bytes == 0) return {};
  memory m;
  m.bytes = world_->allocate<std::byte>(bytes, options_.operator_name + label);
  m.operand = {m.bytes.local(), bytes_between_ranks(m.bytes), size.cols, type, world_->rank()};
  return m;
}

void engine::run(operand_table operands) {
  world_->check();
  operands[operand::inbox] = inbox_.operand;
  operands[operand::outbox] = outbox_.operand;
  ++epoch_;
  run_ = world_->next_run();
  for (int stage = 0; stage < stages_of(program_); ++stage) run_stage(stage, operands);
}

void engine::run_stage(int stage, const operand_table& operands) {
  const stage_workers all{&program_, stage};
  const int count = all.count();
  failed_ = true;  // until the stage has ended well
  team_->launch(count, [&](int i) {
    const auto [kernel, index] = all.locate(i);
    worker& block = workers_[static_cast<std::size_t>(i)];
    block.start(world_->rank(), kernel, index, epoch_, progress_at(run_, stage));
    program_.steps(kernel, index, epoch_, [&](const step& s) { block.take(s, operands); });
  });
  // The worker that found the trouble knows more than those that were told.
  auto outcome = wait_outcome::ok;
  for (int i = 0; i < count; ++i) {
    const auto mine = workers_[static_cast<std::size_t>(i)].outcome();
    if (outcome == wait_outcome::ok || outcome == wait_outcome::aborted)
      outcome = mine == wait_outcome::ok ? outcome : mine;
  }
  if (outcome != wait_outcome::ok) world_->throw_failure(outcome, options_.operator_name);
  failed_ = false;
}

void engine::drain() {
  watch guard = world_->make_watch(0);
  const std::uint64_t progress = progress_at(world_->next_run(), 0);
  for (int k = 0; k < program_.kernels(); ++k) {
    for (int index = 0; index < program_.kernel_at(k).workers; ++index) {
      // Two room sets are in use at most: those of the last two epochs.
      for (std::uint64_t e = epoch_ > 1 ? epoch_ - 1 : 1; e <= epoch_; ++e) {
        program_.steps(k, index, e, [&](const step& s) {
          if (failed_ || !s.publish.named() || s.publish.free < 0) return;
          for (int reader = 0; reader < s.publish.readers; ++reader) {
            const wait_site site{options_.operator_name, verb::drain,   s.publish.consumer,
                                 s.publish.number,       s.publish.use, progress};
            const int index_of_counter = s.publish.free + reader;
            const auto outcome = wait_until<host_memory>(
                *counters_.local(static_cast<std::size_t>(index_of_counter)), site, guard);
            if (outcome != wait_outcome::ok) failed_ = true;
          }
        });
      }
    }
  }
}

engine::~engine() {
  team_.reset();
  if (!failed_ && epoch_ > 0) drain();
  if (failed_) return;
  try {
    world_->free(counters_);
    if (outbox_.bytes) world_->free(outbox_.bytes);
    if (inbox_.bytes) world_->free(inbox_.bytes);
  } catch (const error&) {
    // A stopped world refuses collective calls; its memory goes with it.
    failed_ = true;
  }
}

}  // namespace untax::host
