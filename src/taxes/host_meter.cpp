#include <memory>
#include <string>
#include <vector>

#include <untax/world/launch.hpp>

#include "engines/host/tile_math.hpp"
#include "ops/common/registry.hpp"
#include "src/taxes/meters.hpp"
#include "src/taxes/timed_row.hpp"
#include "src/taxes/transfer_alone.hpp"

namespace untax {
namespace {

/// One way to run an operation, and the step of the ablation it stands for.
struct variant {
  std::string step;
  std::string name;
  operator_options options;
};

std::vector<variant> variants_of(const operator_entry& entry, int workers) {
  const auto options = [&](pattern how, launch_mode launch, direction move = direction::push) {
    operator_options o;
    o.how = how;
    o.launch = launch;
    o.move = move;
    o.workers = workers;
    return o;
  };
  std::vector<variant> all = {
      {"E0", "bulk_library, eager", options(pattern::bulk_library, launch_mode::eager)},
      {"E1", "bulk_library, graph", options(pattern::bulk_library, launch_mode::graph)},
      {"E2", "bulk_synchronous, graph", options(pattern::bulk_synchronous, launch_mode::graph)},
      {"E3", "producer_consumer", options(pattern::producer_consumer, launch_mode::graph)},
      {"E4", "fused_sequential", options(pattern::fused_sequential, launch_mode::graph)},
      {"E4", "fused_specialized", options(pattern::fused_specialized, launch_mode::graph)}};
  if (entry.gathers) {
    all.push_back({"E4", "fused_specialized, pull",
                   options(pattern::fused_specialized, launch_mode::graph, direction::pull)});
  }
  return all;
}

/// The multiplication of one rank with all operands at hand, as one library GEMM.
class multiplication_alone {
 public:
  multiplication_alone(const gemm_problem& problem, const gemm_share& share)
      : rows_(share.b_of_rank > 0 ? problem.m : share.a_rows.size),
        depth_(share.b_cols.size),
        cols_(share.b_rows.size),
        type_(problem.type),
        a_(bytes(rows_, depth_)),
        c_(bytes(rows_, cols_)),
        math_({rows_, cols_}) {
    random_matrix{7}.fill({a_.data(), type_, rows_, depth_}, {0, rows_}, {0, depth_});
  }

  void run(const matrix& weights) {
    host::operand_table operands;
    operands[operand::a] = {.base = a_.data(), .stride = depth_, .type = type_};
    operands[operand::b] = {
        .base = static_cast<std::byte*>(weights.data), .stride = weights.stride, .type = type_};
    operands[operand::c] = {.base = c_.data(), .stride = cols_, .type = type_};
    math_.start_run();
    math_.perform(step{.what = action::multiply,
                       .first = true,
                       .last = true,
                       .rows = rows_,
                       .cols = cols_,
                       .depth = depth_,
                       .from = {operand::a, 0, 0, 0},
                       .weights = {operand::b, 0, 0, 0},
                       .to = {operand::c, 0, 0, 0}},
                  operands);
  }

 private:
  [[nodiscard]] std::size_t bytes(std::int64_t rows, std::int64_t cols) const {
    return static_cast<std::size_t>(rows * cols) * size_of(type_);
  }

  std::int64_t rows_;
  std::int64_t depth_;
  std::int64_t cols_;
  dtype type_;
  std::vector<std::byte> a_;
  std::vector<std::byte> c_;
  host::tile_math math_;
};

tax_row measure_gemm(const layer_operation& op, const ablation_options& options) {
  const operator_entry& entry = operator_named(op.operator_name);
  const gemm_problem problem = problem_of(op);
  const auto variants = variants_of(entry, options.workers);
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
        for (const variant& v : variants) {
          ops.push_back(entry.make(w, problem, v.options));
          runnable* one = ops.back().get();
          const matrix own = one->result();
          const matrix c = own.data != nullptr ? own : inputs.result();
          steps.add(v.step, v.name, [one, &inputs, c] {
            one->run(as_const(inputs.a()), as_const(inputs.weights()), c, {});
          });
        }
        multiplication_alone compute(problem, entry.share(problem, w.size(), w.rank()));
        transfer_alone link(w, entry.bytes_sent(problem, w.size(), w.rank()));
        steps.time(
            w, [&] { compute.run(inputs.weights()); }, [&] { link.run(); }, row);
      },
      settings);
  return row;
}

class host_meter final : public tax_meter {
 public:
  explicit host_meter(ablation_options options) : options_(std::move(options)) {}

  [[nodiscard]] std::optional<std::string> refusal(const layer_operation& op) const override {
    if (!is_attention(op)) (void)operator_named(op.operator_name);
    return std::nullopt;
  }
  [[nodiscard]] int steps_of(const layer_operation& op) const override {
    const std::size_t alone = 2;
    const std::size_t variants =
        is_attention(op) ? host_attention_variants
                         : variants_of(operator_named(op.operator_name), options_.workers).size();
    return static_cast<int>(variants + alone) * (options_.repeats + host_warmups);
  }
  [[nodiscard]] tax_row measure(const layer_operation& op) override {
    return is_attention(op) ? measure_host_attention(op, options_) : measure_gemm(op, options_);
  }
  void describe(tax_report& report) const override { report.backend = "host"; }

 private:
  ablation_options options_;
};

}  // namespace

std::unique_ptr<tax_meter> make_host_meter(const ablation_options& options) {
  return std::make_unique<host_meter>(options);
}

}  // namespace untax
