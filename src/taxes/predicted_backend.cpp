#include "src/taxes/backends.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>
#include <untax/tile/shard.hpp>

#include "ops/common/registry.hpp"
#include "src/taxes/gpu_refusal.hpp"

namespace untax {
namespace {

/// The measurements that represent the steps, by the names of figures. Figures that an operator
/// does not have on GPUs are left out.
constexpr std::array<const char*, 8> gemm_ways = {
    "bulk_library eager", "bulk_library graph", "bulk_synchronous",  "producer_consumer",
    "copy_engine",        "fused_sequential",   "fused_specialized", "fused_warp_specialized"};
constexpr std::array<const char*, 7> sum_ways = {
    "bulk_library eager", "bulk_library graph", "bulk_synchronous",      "producer_consumer",
    "fused_sequential",   "fused_specialized",  "fused_warp_specialized"};
constexpr std::array<const char*, 5> attention_ways = {"bulk_library eager", "bulk_library graph",
                                                       "bulk_synchronous", "producer_consumer",
                                                       "fused_sequential"};

class predicted_backend final : public tax_backend {
 public:
  predicted_backend(const timing::machine& m, const calibration& known, int ranks, int repeats,
                    std::function<void()> progress)
      : ranks_(ranks), progress_(std::move(progress)) {
    if (ranks > m.gpus) {
      throw error(errc::unsupported,
                  fmt::format("{} has {} GPUs; {} ranks need as many", m.name, m.gpus, ranks));
    }
    for (int i = 0; i < repeats; ++i)
      seeds_.emplace_back(m, known,
                          timing::simulation_options{.seed = static_cast<std::uint64_t>(i) + 1});
  }

  [[nodiscard]] std::optional<std::string> refusal(const layer_operation& op) const override {
    if (!is_attention(op) && !can_be_simulated(op)) {
      return fmt::format(
          "m {}, n {}, k {} would take minutes to simulate; predictions go up to {} "
          "columns of an operand and {} tiles of {} x {}",
          op.m, op.n, op.k, most_columns, most_tiles, tile, tile);
    }
    return gpu_refusal(op, ranks_);
  }
  [[nodiscard]] int steps_of(const layer_operation& op) const override {
    return refusal(op) ? 0 : 1;
  }

  [[nodiscard]] tax_row measure(const layer_operation& op) override {
    tax_row row;
    row.op = op;
    timed_case c = case_of(op);
    const timing::machine& m = seeds_.front().machine();
    if (is_attention(op)) {
      row.compute = time_of(c, "local");
      row.link = exactly(m.seconds_to_send(attention_bytes_sent(op, ranks_), ranks_));
      for (const char* way : attention_ways) add(row, c, way);
    } else {
      row.compute = time_of(c, "GEMM alone");
      const spread library = time_of(c, "cuBLASLt alone");
      if (library.median < row.compute.median) row.compute = library;
      double sent = 0;
      for (int rank = 0; rank < ranks_; ++rank)
        sent = std::max(sent,
                        operator_named(op.operator_name).bytes_sent(problem_of(op), ranks_, rank));
      row.link = exactly(m.seconds_to_send(sent, ranks_));
      if (operator_named(op.operator_name).sums_to) {
        for (const char* way : sum_ways) add(row, c, way);
      } else {
        for (const char* way : gemm_ways) add(row, c, way);
      }
    }
    std::ranges::sort(row.steps, {}, &tax_step::id);
    if (progress_) progress_();
    return row;
  }

  void describe(tax_report& report) const override {
    report.backend = "cuda";
    report.gpus = fmt::format("{} x {}", ranks_, seeds_.front().machine().device);
    std::vector<std::string> named;
    for (const auto& [name, ways] : ways_) {
      if (ways.uncalibrated.empty()) continue;
      const bool uncalibrated = ways.uncalibrated.size() == ways.own.size();
      named.push_back(uncalibrated
                          ? "the patterns of " + name
                          : fmt::format("{} of {}", fmt::join(ways.uncalibrated, ", "), name));
    }
    if (!named.empty()) {
      report.notes.push_back(fmt::format(
          "No measured times stand behind {}: their plans are simulated with GEMMs, links and "
          "library calls that were calibrated, and not corrected as others are.",
          fmt::join(named, " and ")));
    }
  }

 private:
  static constexpr std::int64_t most_columns = 1 << 20;
  static constexpr std::int64_t most_tiles = 1 << 20;
  static constexpr std::int64_t tile = 128;

  /// The simulation goes through tiles of the result, and through the columns that are sent.
  [[nodiscard]] static bool can_be_simulated(const layer_operation& op) {
    const std::int64_t tiles = ceil_div(op.m, tile) * ceil_div(op.n, tile);
    return std::max(op.n, op.k) <= most_columns && tiles <= most_tiles;
  }

  [[nodiscard]] timed_case case_of(const layer_operation& op) const {
    timed_case c;
    c.op = op.operator_name;
    c.ranks = ranks_;
    c.gather = op.gather;
    c.m = op.m;
    c.n = op.n;
    c.k = op.k;
    if (is_attention(op)) {
      c.heads = op.attention.heads;
      c.kv_heads = op.attention.kv_heads;
      c.head_dim = op.attention.head_dim;
      c.keys = op.k;
    }
    return c;
  }
  spread time_of(timed_case c, const char* way) {
    c.by = way;
    std::vector<double> seconds;
    for (predictor& p : seeds_) seconds.push_back(p.predict(c).seconds);
    return spread_of(std::move(seconds));
  }
  void add(tax_row& row, const timed_case& c, const std::string& way) {
    const bool eager = way.ends_with(" eager");
    const std::string how = way.substr(0, way.find(' '));
    const std::string id = eager ? "E0" : step_of(pattern_of(how));
    add_step(row, id, how + (eager ? ", eager" : ", graph"), time_of(c, way.c_str()));
    timed_case same = c;
    same.by = way;
    if (way.starts_with("bulk_library")) return;
    // Predicted from its parts, which are calibrated by themselves.
    if (way == "bulk_synchronous" && c.sums()) return;
    known_ways& ways = ways_[c.op];
    ways.own.insert(how);
    if (!seeds_.front().known().knows(predictor::key_of(same).what)) ways.uncalibrated.insert(how);
  }

  /// The patterns other than bulk_library, and which of them have no calibration.
  struct known_ways {
    std::set<std::string> own;
    std::set<std::string> uncalibrated;
  };

  int ranks_;
  std::function<void()> progress_;
  std::vector<predictor> seeds_;
  std::map<std::string, known_ways> ways_;  // by operator
};

}  // namespace

std::unique_ptr<tax_backend> make_predicted_backend(const timing::machine& m,
                                                    const calibration& known, int ranks,
                                                    int repeats, std::function<void()> progress) {
  return std::make_unique<predicted_backend>(m, known, ranks, repeats, std::move(progress));
}

}  // namespace untax
