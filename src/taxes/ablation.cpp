#include <untax/taxes/ablation.hpp>

#include <algorithm>

#include <untax/tile/shard.hpp>

#include "ops/flash_decode/planning.hpp"
#include "src/taxes/backends.hpp"
#include "src/taxes/gpu_refusal.hpp"
#include "src/taxes/taxes_need.hpp"

namespace untax {

std::unique_ptr<tax_backend> make_tax_backend(const ablation_options& options,
                                              const std::vector<layer_operation>& operations) {
  const bool on_gpus = options.backend == memory_kind::cuda;
  if (on_gpus) refuse_shared_gpus();
  require_memory(options, operations);
  return on_gpus ? make_device_backend(options, operations) : make_host_backend(options);
}

void measure_into(tax_report& report, tax_backend& backend,
                  const std::vector<layer_operation>& operations,
                  const std::function<void(const layer_operation&)>& on_begin) {
  for (const layer_operation& op : operations) {
    if (auto reason = backend.refusal(op)) {
      report.unmeasured.push_back({op, *std::move(reason)});
      continue;
    }
    on_begin(op);
    report.rows.push_back(backend.measure(op));
  }
  keep_longest_timeline(report);
  backend.describe(report);
}

bool is_attention(const layer_operation& op) noexcept { return op.attention.heads > 0; }

gemm_problem problem_of(const layer_operation& op) noexcept {
  return {.m = op.m, .n = op.n, .k = op.k, .type = op.type, .gather = op.gather};
}

flash_decode_problem attention_problem_of(const layer_operation& op) noexcept {
  return {.batch = op.m,
          .heads = op.attention.heads,
          .kv_heads = op.attention.kv_heads,
          .head_dim = op.attention.head_dim,
          .keys = op.k,
          .type = op.type};
}

double attention_bytes_sent(const layer_operation& op, int ranks) noexcept {
  // Partial sums and two statistics, in fp32.
  const auto rows = static_cast<double>(op.m) * static_cast<double>(op.attention.heads);
  const auto row = static_cast<double>(op.attention.head_dim + 2);
  return rows * row * (ranks - 1) * sizeof(float);
}

std::string label_of(const layer_operation& op, const std::string& step, const std::string& ran) {
  return op.name + " " + step + " " + ran;
}

std::string step_of(pattern how) {
  switch (how) {
    case pattern::automatic:
    case pattern::bulk_library:
      return "E1";
    case pattern::bulk_synchronous:
      return "E2";
    case pattern::producer_consumer:
    case pattern::copy_engine:
      return "E3";
    default:
      return "E4";
  }
}

void add_step(tax_row& row, const std::string& id, const std::string& ran, const spread& time) {
  const auto known = std::ranges::find(row.steps, id, &tax_step::id);
  if (known == row.steps.end()) {
    row.steps.push_back({id, ran, time});
  } else if (time.median < known->time.median) {
    *known = {id, ran, time};
  }
}

}  // namespace untax
