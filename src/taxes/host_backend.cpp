#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <untax/trace/session.hpp>
#include <untax/world/launch.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "src/taxes/backends.hpp"
#include "src/taxes/multiplication_alone.hpp"
#include "src/taxes/timed_row.hpp"
#include "src/taxes/transfer_alone.hpp"

namespace untax {
namespace {

/// One configuration of an operation, and the step of the ablation that it measures.
struct gemm_variant {
  std::string step;
  std::string name;
  operator_options options;
};

/// With one rank there is no wait for peers, so E3 would equal E2, and is left out.
std::vector<gemm_variant> variants_of(const operator_entry& entry, int workers, int ranks) {
  const auto options = [&](pattern how, launch_mode launch, direction move = direction::push) {
    operator_options o;
    o.how = how;
    o.launch = launch;
    o.move = move;
    o.workers = workers;
    return o;
  };
  std::vector<gemm_variant> variants = {
      {"E0", "bulk_library, eager", options(pattern::bulk_library, launch_mode::eager)},
      {"E1", "bulk_library, graph", options(pattern::bulk_library, launch_mode::graph)},
      {"E2", "bulk_synchronous, graph", options(pattern::bulk_synchronous, launch_mode::graph)},
      {"E3", "producer_consumer", options(pattern::producer_consumer, launch_mode::graph)},
      {"E4", "fused_sequential", options(pattern::fused_sequential, launch_mode::graph)},
      {"E4", "fused_specialized", options(pattern::fused_specialized, launch_mode::graph)}};
  if (entry.gathers) {
    const auto pulled = [&](pattern how) {
      return options(how, launch_mode::graph, direction::pull);
    };
    variants.push_back({"E3", "producer_consumer, pull", pulled(pattern::producer_consumer)});
    variants.push_back({"E4", "fused_specialized, pull", pulled(pattern::fused_specialized)});
  }
  if (ranks == 1) std::erase_if(variants, [](const gemm_variant& v) { return v.step == "E3"; });
  return variants;
}

tax_row measure_gemm(const layer_operation& op, const ablation_options& options) {
  const operator_entry& entry = operator_named(op.operator_name);
  const gemm_problem problem = problem_of(op);
  const auto variants = variants_of(entry, options.workers, options.ranks);
  tax_row row;
  row.op = op;

  world_options settings;
  settings.heap_bytes = heap_for(problem, options.ranks) * host_gemm_heaps;
  run_threads(
      options.ranks,
      [&](world& w) {
        std::optional<trace_pause> untraced(std::in_place);
        // One set of inputs for all variants; a workload owns them and the first operator.
        workload inputs(w, entry, problem, variants.front().options, options.seed);
        const auto run = [&inputs](runnable& it) {
          const matrix own = it.result();
          it.run(as_const(inputs.a()), as_const(inputs.weights()),
                 own.data != nullptr ? own : inputs.result(), {});
        };
        {
          std::vector<std::unique_ptr<runnable>> ops;
          timed_row steps(options);
          for (const gemm_variant& v : variants) {
            ops.push_back(entry.make(w, problem, v.options));
            steps.add(v.step, v.name, [&run, it = ops.back().get()] { run(*it); });
          }
          // The last variant is a fused one.
          multiplication_alone compute(problem, entry.share(problem, w.size(), w.rank()),
                                       ops.back()->plan());
          for (const alone_way way : alone_ways)
            steps.add_compute([&compute, &inputs, way] { compute.run(way, inputs.weights()); });
          transfer_alone link(w, entry.bytes_sent(problem, w.size(), w.rank()));
          steps.time(
              w, [&] { link.run(); }, row);
        }
        untraced.reset();
        if (!is_tracing()) return;
        traced_runs<runnable> traced(options, op);
        for (const gemm_variant& v : variants)
          traced.add(v.step, v.name, [&] { return entry.make(w, problem, v.options); });
        traced.run(w, run);
      },
      settings);
  return row;
}

class host_backend final : public tax_backend {
 public:
  explicit host_backend(ablation_options options) : options_(std::move(options)) {}

  [[nodiscard]] std::optional<std::string> refusal(const layer_operation& op) const override {
    if (!is_attention(op)) (void)operator_named(op.operator_name);
    return std::nullopt;
  }
  [[nodiscard]] int steps_of(const layer_operation& op) const override {
    attention_runs runs = host_attention_runs(options_.ranks);
    if (!is_attention(op)) {
      runs.steps =
          variants_of(operator_named(op.operator_name), options_.workers, options_.ranks).size();
      runs.alone = std::size(alone_ways);
    }
    const std::size_t link = 1;
    const bool traced = options_.traced || is_tracing();
    return static_cast<int>(runs.steps + runs.alone + link) * (options_.repeats + host_warmups) +
           (traced ? static_cast<int>(runs.steps) * traced_runs_of(options_) : 0);
  }
  [[nodiscard]] tax_row measure(const layer_operation& op) override {
    if (!options_.traced || is_tracing()) return measured(op);
    start_trace({});
    try {
      tax_row row = measured(op);
      add_trace(row, stop_trace());
      return row;
    } catch (...) {
      stop_quietly();
      throw;
    }
  }
  void describe(tax_report& report) const override { report.backend = "host"; }

 private:
  [[nodiscard]] tax_row measured(const layer_operation& op) const {
    return is_attention(op) ? measure_host_attention(op, options_) : measure_gemm(op, options_);
  }
  /// Ends the trace if it has not ended yet.
  static void stop_quietly() noexcept {
    try {
      if (is_tracing()) (void)stop_trace();
    } catch (const std::exception&) {
      return;
    }
  }

  ablation_options options_;
};

}  // namespace

int traced_runs_of(const ablation_options& options) noexcept {
  constexpr int most = 6;
  return std::min(options.repeats + 1, most);
}

std::unique_ptr<tax_backend> make_host_backend(const ablation_options& options) {
  return std::make_unique<host_backend>(options);
}

}  // namespace untax
