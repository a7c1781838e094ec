#include <memory>
#include <string>
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
  if (ranks == 1) std::erase_if(variants, [](const gemm_variant& v) { return v.step == "E3"; });
  if (entry.gathers) {
    variants.push_back({"E4", "fused_specialized, pull",
                        options(pattern::fused_specialized, launch_mode::graph, direction::pull)});
  }
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
        // One set of inputs for all variants; a workload owns them and the first operator.
        workload inputs(w, entry, problem, variants.front().options, options.seed);
        std::vector<std::unique_ptr<runnable>> ops;
        timed_row steps(options);
        for (const gemm_variant& v : variants) {
          const trace_label label(label_of(op, v.step, v.name));
          ops.push_back(entry.make(w, problem, v.options));
          runnable* added = ops.back().get();
          const matrix own = added->result();
          const matrix c = own.data != nullptr ? own : inputs.result();
          steps.add(v.step, v.name, [added, &inputs, c] {
            added->run(as_const(inputs.a()), as_const(inputs.weights()), c, {});
          });
        }
        // The last variant is a fused one.
        multiplication_alone compute(problem, entry.share(problem, w.size(), w.rank()),
                                     ops.back()->plan());
        for (const alone_way way : alone_ways)
          steps.add_compute([&compute, &inputs, way] { compute.run(way, inputs.weights()); });
        transfer_alone link(w, entry.bytes_sent(problem, w.size(), w.rank()));
        steps.time(
            w, [&] { link.run(); }, row);
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
    const std::size_t link = 1;
    const std::size_t variants = is_attention(op) ? host_attention_runs(options_.ranks)
                                                  : variants_of(operator_named(op.operator_name),
                                                                options_.workers, options_.ranks)
                                                            .size() +
                                                        std::size(alone_ways);
    return static_cast<int>(variants + link) * (options_.repeats + host_warmups);
  }
  [[nodiscard]] tax_row measure(const layer_operation& op) override {
    return is_attention(op) ? measure_host_attention(op, options_) : measure_gemm(op, options_);
  }
  void describe(tax_report& report) const override { report.backend = "host"; }

 private:
  ablation_options options_;
};

}  // namespace

std::unique_ptr<tax_backend> make_host_backend(const ablation_options& options) {
  return std::make_unique<host_backend>(options);
}

}  // namespace untax
