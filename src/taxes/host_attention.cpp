#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <untax/ops/flash_decode.hpp>
#include <untax/trace/session.hpp>
#include <untax/world/launch.hpp>

#include "ops/flash_decode/planning.hpp"
#include "ops/flash_decode/workload.hpp"
#include "src/taxes/backends.hpp"
#include "src/taxes/timed_row.hpp"
#include "src/taxes/transfer_alone.hpp"

namespace untax {
namespace {

struct attention_variant {
  const char* step = "";
  const char* name = "";
  pattern how = pattern::bulk_library;
  launch_mode launch = launch_mode::graph;
};

constexpr std::array<attention_variant, host_attention_variants> variants = {
    {{"E0", "bulk_library, eager", pattern::bulk_library, launch_mode::eager},
     {"E1", "bulk_library, graph", pattern::bulk_library},
     {"E2", "bulk_synchronous, graph", pattern::bulk_synchronous},
     {"E3", "producer_consumer", pattern::producer_consumer},
     {"E4", "fused_sequential", pattern::fused_sequential},
     {"E4", "fused_specialized", pattern::fused_specialized}}};

constexpr int most_splits = 64;

/// The patterns that attention alone is measured with.
constexpr std::array alone_patterns = {pattern::bulk_library, pattern::fused_sequential};

/// With one rank there is no wait for peers, so E3 would equal E2.
bool is_there(const attention_variant& v, int ranks) noexcept {
  return ranks > 1 || v.how != pattern::producer_consumer;
}

/// The attention of one rank to its own keys, in a world of one rank, with the workers and splits
/// of the pattern between ranks.
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

attention_runs host_attention_runs(int ranks) noexcept {
  const auto steps = std::ranges::count_if(
      variants, [&](const attention_variant& v) { return is_there(v, ranks); });
  return {static_cast<std::size_t>(steps), alone_patterns.size()};
}

flash_decode_options alone_like(const flash_decode_plan& fused, pattern how) {
  return {.how = how, .workers = fused.workers, .splits = fused.splits};
}

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
        const attention_operands operands(work, w.size(), w.rank());
        operand_set memory(w, operands.operands());
        operands.fill(options.seed, memory);
        const auto run = [&](flash_decode& decode) { operands.run(decode, memory, {}); };
        const auto make = [&](const attention_variant& v) {
          return std::make_unique<flash_decode>(
              w, work.problem,
              flash_decode_options{.how = v.how, .launch = v.launch, .workers = options.workers});
        };
        {
          const trace_pause untraced;
          std::vector<std::unique_ptr<flash_decode>> ops;
          timed_row steps(options);
          for (const attention_variant& v : variants) {
            if (!is_there(v, w.size())) continue;
            ops.push_back(make(v));
            steps.add(v.step, v.name, [&run, one = ops.back().get()] { run(*one); });
          }
          const flash_decode_plan& fused = ops.back()->plan();
          std::vector<std::unique_ptr<attention_alone>> alone;
          for (const pattern how : alone_patterns) {
            alone.push_back(
                std::make_unique<attention_alone>(work.problem, alone_like(fused, how)));
            steps.add_compute([&run, one = alone.back().get()] { run(one->op()); });
          }
          transfer_alone link(w, attention_bytes_sent(op, w.size()));
          steps.time(
              w, [&] { link.run(); }, row);
        }
        if (!is_tracing()) return;
        traced_runs<flash_decode> traced(options, op);
        for (const attention_variant& v : variants) {
          if (is_there(v, w.size())) traced.add(v.step, v.name, [&] { return make(v); });
        }
        traced.run(w, run);
      },
      settings);
  return row;
}

}  // namespace untax
