#include <array>
#include <memory>
#include <string>
#include <vector>

#include <untax/ops/flash_decode.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/world/launch.hpp>

#include "ops/flash_decode/planning.hpp"
#include "src/taxes/meters.hpp"
#include "src/taxes/transfer_alone.hpp"

namespace untax {
namespace {

struct variant {
  const char* step = "";
  const char* name = "";
  pattern how = pattern::bulk_library;
  launch_mode launch = launch_mode::graph;
};

constexpr std::array<variant, host_attention_variants> variants = {
    {{"E0", "bulk_library, eager", pattern::bulk_library, launch_mode::eager},
     {"E1", "bulk_library, graph", pattern::bulk_library},
     {"E2", "bulk_synchronous, graph", pattern::bulk_synchronous},
     {"E3", "producer_consumer", pattern::producer_consumer},
     {"E4", "fused_sequential", pattern::fused_sequential},
     {"E4", "fused_specialized", pattern::fused_specialized}}};

constexpr int most_splits = 64;

/// What a rank holds of a problem.
class rank_inputs {
 public:
  rank_inputs(const attention_work& work, const world& w, std::uint64_t seed)
      : type_(work.problem.type),
        rows_(work.problem.batch * work.problem.heads),
        q_(own(q_memory_, {rows_, work.problem.head_dim})),
        keys_(own(keys_memory_, cache_extent(work.problem))),
        values_(own(values_memory_, cache_extent(work.problem))),
        out_(own(out_memory_, {rows_, work.problem.head_dim})) {
    const attention_inputs inputs(work, w.size(), seed);
    inputs.fill_queries(q_);
    inputs.fill_cache(w.rank(), keys_, values_, lengths_, table_);
  }

  void run(flash_decode& op) const {
    op.run(as_const(q_),
           {.keys = as_const(keys_), .values = as_const(values_), .lengths = lengths_.data()},
           out_);
  }

 private:
  matrix own(std::vector<std::byte>& memory, const extent& size) const {
    memory.resize(static_cast<std::size_t>(size.rows * size.cols) * size_of(type_));
    return {memory.data(), type_, size.rows, size.cols};
  }

  dtype type_;
  std::int64_t rows_;
  std::vector<std::byte> q_memory_;
  std::vector<std::byte> keys_memory_;
  std::vector<std::byte> values_memory_;
  std::vector<std::byte> out_memory_;
  matrix q_;
  matrix keys_;
  matrix values_;
  matrix out_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int32_t> table_;
};

/// Attention of one rank to what it has, as a world of its own.
class attention_alone {
 public:
  explicit attention_alone(const flash_decode_problem& problem, const flash_decode_options& options)
      : worlds_(world::threads(1, with_heap(heap_for(problem, 1, most_splits)))),
        op_(worlds_[0], problem, options) {}

  flash_decode& op() noexcept { return op_; }

 private:
  static world_options with_heap(std::size_t bytes) {
    world_options options;
    options.heap_bytes = bytes;
    return options;
  }

  std::vector<world> worlds_;
  flash_decode op_;
};

}  // namespace

tax_row measure_host_attention(const layer_operation& op, const ablation_options& options) {
  const attention_work work{attention_problem_of(op)};
  tax_row row;
  row.op = op;
  world_options settings;
  settings.heap_bytes = heap_for(work.problem, options.ranks, most_splits) * variants.size() +
                        2 * static_cast<std::size_t>(attention_bytes_sent(op, options.ranks)) +
                        (std::size_t{1} << 20);
  run_threads(
      options.ranks,
      [&](world& w) {
        const rank_inputs inputs(work, w, options.seed);
        std::vector<std::unique_ptr<flash_decode>> ops;
        timed_variants timed;
        timed.warmups = host_warmups;
        timed.repeats = options.repeats;
        for (const variant& v : variants) {
          const flash_decode_options how{
              .how = v.how, .launch = v.launch, .workers = options.workers};
          ops.push_back(std::make_unique<flash_decode>(w, work.problem, how));
          timed.run.emplace_back([&inputs, one = ops.back().get()] { inputs.run(*one); });
        }
        attention_alone compute(work.problem,
                                {.how = pattern::bulk_library, .workers = options.workers});
        transfer_alone link(w, attention_bytes_sent(op, w.size()));
        timed.run.emplace_back([&] { inputs.run(compute.op()); });
        timed.run.emplace_back([&] { link.run(); });
        if (w.rank() == 0) timed.after_run = options.progress;

        const auto times = time_interleaved(w, timed);
        if (w.rank() != 0) return;
        for (std::size_t i = 0; i < variants.size(); ++i)
          add_step(row, variants[i].step, variants[i].name, times[i]);
        row.compute = times[variants.size()];
        row.link = times[variants.size() + 1];
      },
      settings);
  return row;
}

}  // namespace untax
