#include "engines/host/engine.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>

namespace untax::host {
namespace {

/// The progress of a rank at the start of a stage of a run. The progress of its steps counts on
/// from there.
std::uint64_t progress_at(std::uint64_t run, int stage) {
  return run << 32U | static_cast<std::uint64_t>(stage) << 28U;
}

}  // namespace

/// The work of a run: kernels, workers and steps.
class engine::work {
 public:
  work(const program& p, std::uint64_t epoch) : exact_(&p), run_{epoch, 0}, kernels_(p.kernels()) {}
  work(const row_program& p, const row_run& run)
      : any_(&p), run_(run), kernels_(p.sizes_at(run.rows).kernels) {}

  [[nodiscard]] const row_run& run() const noexcept { return run_; }
  [[nodiscard]] int stages() const { return kernel_at(kernels_ - 1).stage + 1; }
  /// The number of workers of all kernels of one stage. They are numbered together.
  [[nodiscard]] int workers_of(int stage) const {
    int workers = 0;
    for (int k = 0; k < kernels_; ++k) {
      if (kernel_at(k).stage == stage) workers += kernel_at(k).workers;
    }
    return workers;
  }
  /// The kernel, and the number in that kernel, of a worker of the stage.
  [[nodiscard]] std::pair<int, int> locate(int stage, int worker) const {
    int k = 0;
    for (;; ++k) {
      if (kernel_at(k).stage != stage) continue;
      if (worker < kernel_at(k).workers) return {k, worker};
      worker -= kernel_at(k).workers;
    }
  }
  /// All kernels, for traces.
  [[nodiscard]] std::vector<trace_kernel> kernels() const {
    std::vector<trace_kernel> trace_kernels;
    for (int k = 0; k < kernels_; ++k)
      trace_kernels.push_back({kernel_at(k).name, kernel_at(k).stage, kernel_at(k).workers});
    return trace_kernels;
  }
  [[nodiscard]] int most_workers() const {
    int most = 1;
    for (int stage = 0; stage < stages(); ++stage) most = std::max(most, workers_of(stage));
    return most;
  }
  void steps(int kernel, int worker, const program::sink& emit) const {
    if (any_ != nullptr) return any_->steps(run_, kernels_, kernel, worker, emit);
    exact_->steps(kernel, worker, run_.number, emit);
  }

 private:
  [[nodiscard]] kernel kernel_at(int i) const {
    return any_ != nullptr ? any_->kernel_at(run_.rows, i) : exact_->kernel_at(i);
  }

  const program* exact_ = nullptr;
  const row_program* any_ = nullptr;
  row_run run_;
  int kernels_;
};

engine::engine(world& w, program p, engine_options options)
    : world_(&w.stable_view()), program_(std::move(p)), options_(std::move(options)) {
  refuse_gpus(w);
  const auto matrix = [&](const extent& size, dtype type, const char* label) {
    return allocate(size.rows * size.cols, size.cols, type, label);
  };
  inbox_ = matrix(program_->inbox(), options_.inbox_type, " inbox");
  outbox_ = matrix(program_->outbox(), options_.outbox_type, " outbox");
  make_counters(program_->counters());
  make_workers_or_stop(work(*program_, 1).most_workers(), program_->tile_extent());
}

engine::engine(world& w, row_program p, engine_options options)
    : world_(&w.stable_view()), rows_(std::move(p)), options_(std::move(options)) {
  refuse_gpus(w);
  const auto in_sets = [&](std::int64_t elements, dtype type, const char* label) {
    // Sets are aligned for vector accesses.
    constexpr std::int64_t aligned = 64;
    const std::int64_t of_set = round_up(elements, aligned);
    memory m = allocate(run_sets * of_set, 0, type, label);
    m.elements_of_set = of_set;
    return m;
  };
  inbox_ = in_sets(rows_->inbox_elements(), options_.inbox_type, " inbox");
  outbox_ = in_sets(rows_->outbox_elements(), options_.outbox_type, " outbox");
  make_counters(rows_->counters());
  roll_call_ =
      std::make_unique<roll_call>(*world_, *rows_, counters_.get(), options_.operator_name);
  int most = 1;
  for (const std::int64_t rows : rows_->ends())
    most = std::max(most, work(*rows_, {1, rows}).most_workers());
  make_workers_or_stop(most, rows_->tile_extent());
}

void engine::refuse_gpus(const world& w) const {
  if (w.memory() == memory_kind::host) return;
  throw error(errc::unsupported,
              fmt::format("rank {}: {} computes on the host, and the heaps of this world are in "
                          "GPU memory; use a world of threads, or of processes with {}=host",
                          w.rank(), options_.operator_name, variable::memory.name));
}

void engine::make_counters(int counters) {
  counters_ = world_->allocate_owned_cleared<std::uint64_t>(
      static_cast<std::size_t>(std::max(counters, 1)), options_.operator_name + " counters");
}

void engine::make_workers_or_stop(int most, const extent& tile) {
  try {
    make_workers(most, tile);
    if (rows_) warm_up();
  } catch (const error& e) {
    world_->fail(e.code(), e.what());
    throw;
  } catch (const std::bad_alloc&) {
    world_->fail(errc::out_of_memory,
                 fmt::format("{}: no memory for its workers", options_.operator_name));
    throw;
  }
}

void engine::make_workers(int most, const extent& tile) {
  const work whole = rows_ ? work(*rows_, {1, rows_->capacity()}) : work(*program_, 1);
  trace_ = engine_trace::open(*world_, options_.operator_name, whole.kernels());
  for (int i = 0; i < most; ++i) {
    watch guard = world_->make_watch(i);
    guard.ask(roll_call_.get());
    workers_.emplace_back(options_.operator_name, counters_.get(), guard, tile, options_.in_order,
                          options_.faults.get(), world_->kind() == "processes");
    if (trace_) workers_.back().record(trace_->worker(static_cast<std::size_t>(i)));
  }
  team_ = std::make_unique<team>(most, options_.launch,
                                 fmt::format("rank {}: {}", world_->rank(), options_.operator_name),
                                 [this](const error& e) { world_->fail(e.code(), e.what()); });
}

/// Reserves the memory that workers need for any number of rows, so that runs allocate nothing.
void engine::warm_up() {
  operand_table types;
  for (const operand role : {operand::a, operand::b, operand::c})
    types[role].type = options_.operand_type;
  types[operand::inbox].type = options_.inbox_type;
  types[operand::outbox].type = options_.outbox_type;
  math_need need;
  for (const std::int64_t rows : rows_->ends()) {
    const work w(*rows_, {1, rows});
    for (int stage = 0; stage < w.stages(); ++stage) {
      for (int i = 0; i < w.workers_of(stage); ++i) {
        const auto [kernel, index] = w.locate(stage, i);
        w.steps(kernel, index, [&](const step& s) { need.add(s, types); });
      }
    }
  }
  for (worker& block : workers_) block.reserve(need);
}

engine::memory engine::allocate(std::int64_t elements, std::int64_t cols, dtype type,
                                const std::string& label) {
  const auto bytes = static_cast<std::size_t>(elements) * size_of(type);
  if (bytes == 0) return {};
  memory m;
  m.bytes = world_->allocate_owned<std::byte>(bytes, options_.operator_name + label);
  m.operand = {m.bytes->local(), m.bytes->span(), cols, type, world_->rank()};
  return m;
}

void engine::run(operand_table operands) {
  world_->check();
  operands[operand::inbox] = inbox_.operand;
  operands[operand::outbox] = outbox_.operand;
  carry_out(work(*program_, ++epoch_), operands);
}

void engine::run(operand_table operands, std::int64_t rows) {
  world_->check();
  const row_run run{++epoch_, rows};
  const auto sizes = rows_->sizes_at(rows);
  const auto in_set = [&](const memory& m, std::int64_t cols) {
    operand_memory at = m.operand;
    at.base += static_cast<std::size_t>(run.set() * m.elements_of_set) * size_of(at.type);
    at.stride = cols;
    return at;
  };
  operands[operand::inbox] = in_set(inbox_, sizes.inbox.cols);
  operands[operand::outbox] = in_set(outbox_, sizes.outbox.cols);
  roll_call_->begin(run);
  carry_out(work(*rows_, run), operands);
  roll_call_->end();
}

void engine::carry_out(const work& w, const operand_table& operands) {
  run_ = world_->next_run();
  const trace_scope note(caller_ring(), {.kind = trace_kind::run,
                                         .readers = w.stages(),
                                         .number = static_cast<std::int64_t>(w.run().number)});
  for (int stage = 0; stage < w.stages(); ++stage) run_stage(w, stage, operands);
}

void engine::run_stage(const work& w, int stage, const operand_table& operands) {
  const int count = w.workers_of(stage);
  const trace_scope note(caller_ring(),
                         {.kind = trace_kind::stage, .readers = count, .number = stage});
  const auto body = [&](int i) {
    const auto [kernel, index] = w.locate(stage, i);
    worker& block = workers_[static_cast<std::size_t>(i)];
    block.start(world_->rank(), kernel, index, w.run().number, progress_at(run_, stage));
    const trace_scope running(block.ring(), {.kind = trace_kind::kernel, .number = kernel});
    w.steps(kernel, index, [&](const step& s) { block.take(s, operands); });
  };
  // Passed by reference: std::function allocates memory for captures of more than two pointers.
  team_->launch(count, std::cref(body));
  // Prefers the outcome of the worker that found the failure to `aborted`, which the other workers
  // have.
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
