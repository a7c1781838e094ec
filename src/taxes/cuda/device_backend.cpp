#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/world/devices.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "src/taxes/backends.hpp"
#include "src/taxes/cuda/attention_benchmark.hpp"
#include "src/taxes/cuda/overlap_measurement.hpp"
#include "src/taxes/cuda/peak_rates.hpp"
#include "src/taxes/gpu_refusal.hpp"

namespace untax {
namespace {

std::vector<pattern> own_patterns() {
  std::vector<pattern> own;
  for (const pattern how : all_patterns) {
    if (how != pattern::automatic && how != pattern::bulk_library) own.push_back(how);
  }
  return own;
}

std::size_t heap_for_all(const std::vector<layer_operation>& operations, int ranks) {
  std::vector<gemm_problem> gemms;
  std::size_t attention = 0;
  for (const layer_operation& op : operations) {
    if (gpu_refusal(op, ranks)) continue;
    if (is_attention(op)) {
      attention = std::max(attention, heap_for_attention(op, ranks));
    } else {
      gemms.push_back(problem_of(op));
    }
  }
  return std::max(attention,
                  overlap_measurement::heap_for_any(gemms, ranks, own_patterns().size())) +
         link_bytes;
}

/// Measures on the GPUs of this process.
class device_backend final : public tax_backend {
 public:
  device_backend(const ablation_options& options, const std::vector<layer_operation>& operations)
      : options_(options),
        team_(options.ranks, heap_for_all(operations, options.ranks)),
        link_rate_(spread_of_link_rate(team_)) {}

  [[nodiscard]] std::optional<std::string> refusal(const layer_operation& op) const override {
    return gpu_refusal(op, team_.size());
  }
  [[nodiscard]] int steps_of(const layer_operation& op) const override {
    return gpu_refusal(op, team_.size()) ? 0 : 1;
  }

  [[nodiscard]] tax_row measure(const layer_operation& op) override {
    tax_row row = is_attention(op)
                      ? measure_device_attention(team_, op, options_.repeats, link_rate_)
                      : measure_gemm(op);
    if (options_.progress) options_.progress();
    return row;
  }

  void describe(tax_report& report) const override {
    report.backend = "cuda";
    report.gpus = fmt::format("{} x {}", team_.size(), team_.device_name());
    report.driver = survey_devices(false).driver;
    report.libraries = bulk::blas().text + ", " + bulk::nccl().text;
    if (weights_are_constant) {
      report.notes.emplace_back(
          "Weights are constant (constant_weights): a pattern may read some while the kernel ahead "
          "ends.");
    }
    report.notes.push_back(fmt::format("NCCL is called as {}.", bulk::nccl_calls));
  }

 private:
  tax_row measure_gemm(const layer_operation& op) {
    const operator_entry& entry = operator_named(op.operator_name);
    auto& benchmark = by_operator_[op.operator_name];
    if (!benchmark) {
      benchmark = std::make_unique<overlap_measurement>(
          team_, entry, overlap_settings{.patterns = own_patterns(), .repeats = options_.repeats});
    }
    const gemm_problem problem = problem_of(op);
    tax_row row;
    row.op = op;
    double sent = 0;
    for (int rank = 0; rank < team_.size(); ++rank) {
      sent = std::max(sent, entry.bytes_sent(problem, team_.size(), rank));
    }
    row.link = seconds_at(sent, link_rate_);
    for (const pattern_figure& f : benchmark->measure(problem)) {
      if (!f.time) continue;
      // The bound is a lower limit, so the faster of the two counts.
      const bool alone = f.by == library_gemm_alone || f.by == own_gemm_alone;
      if (alone && (row.compute.median == 0 || f.time->median < row.compute.median))
        row.compute = *f.time;
      if (!f.how) continue;
      if (!(f.error <= tolerance_of(entry, problem))) {
        throw error(errc::internal, fmt::format("{}: {} of m {}, n {}, k {} has a relative error "
                                                "of {:.1e}; at most {:.1e} is right",
                                                op.name, f.by, op.m, op.n, op.k, f.error,
                                                tolerance_of(entry, problem)));
      }
      const bool eager = f.by == library_eager;
      add_step(row, eager ? "E0" : step_of(*f.how),
               fmt::format("{}, {}", name_of(*f.how), eager ? "eager" : "graph"), *f.time);
    }
    std::ranges::sort(row.steps, {}, &tax_step::id);
    return row;
  }

  ablation_options options_;
  gpu_team team_;
  spread link_rate_;
  std::map<std::string, std::unique_ptr<overlap_measurement>> by_operator_;
};

}  // namespace

std::unique_ptr<tax_backend> make_device_backend(const ablation_options& options,
                                                 const std::vector<layer_operation>& operations) {
  return std::make_unique<device_backend>(options, operations);
}

}  // namespace untax
