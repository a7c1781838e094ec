#include "engines/host/engine.hpp"

#include <algorithm>
#include <new>
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
    : world_(&w.stable_view()), program_(std::move(p)), options_(std::move(options)) {
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
      world_->allocate_owned_cleared<std::uint64_t>(counters, options_.operator_name + " counters");
  try {
    make_workers();
  } catch (const error& e) {
    world_->fail(e.code(), e.what());
    throw;
  } catch (const std::bad_alloc&) {
    world_->fail(errc::out_of_memory,
                 fmt::format("{}: no memory for its workers", options_.operator_name));
    throw;
  }
}

void engine::make_workers() {
  int most = 1;
  for (int stage = 0; stage < stages_of(program_); ++stage)
    most = std::max(most, stage_workers{&program_, stage}.count());
  for (int i = 0; i < most; ++i) {
    workers_.emplace_back(options_.operator_name, counters_.get(), world_->make_watch(i),
                          program_.tile_extent(), options_.faults.get());
  }
  team_ = std::make_unique<team>(most, options_.launch,
                                 fmt::format("rank {}: {}", world_->rank(), options_.operator_name),
                                 [this](const error& e) { world_->fail(e.code(), e.what()); });
}

engine::memory engine::allocate(const extent& size, dtype type, const std::string& label) {
  const auto bytes = static_cast<std::size_t>(size.rows * size.cols) * size_of(type);
  if (bytes == 0) return {};
  memory m;
  m.bytes = world_->allocate_owned<std::byte>(bytes, options_.operator_name + label);
  m.operand = {m.bytes->local(), m.bytes->span(), size.cols, type, world_->rank()};
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
}

engine::~engine() {
  team_.reset();
  if (options_.faults) options_.faults->settle();
}

}  // namespace untax::host
