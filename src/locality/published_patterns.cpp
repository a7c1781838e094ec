#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <untax/locality/certificate.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/published.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality {
namespace {

constexpr const char* source =
    "github.com/AMDResearch/intelliperf, branch hardware-aware-swizzling at 75106f3 "
    "(arXiv 2508.20258): ten kernels, MI300X";
constexpr const char* as_numbered = "as numbered";

/// Hits in per cent and times in milliseconds, as in the logs. A kernel of which only hits were
/// measured has no times.
struct measured_pattern {
  const char* kernel;
  const char* name;
  const char* formula;
  double hits;
  double milliseconds;
};

// In the published code the first axis of a grid has the rows, and changes first; formulas count
// along a row. This macro converts to the axes of untax's kernel texts.
#define UNTAX_ALONG_ROWS "id = y * x_blocks + x; "
#define UNTAX_PLACE "; y = new // x_blocks; x = new % x_blocks"

constexpr measured_pattern patterns[] = {
    {"gemm", as_numbered, "p", 49.4, 5.85},
    {"gemm", "final: a run of blocks for each domain",
     "q = p % 304; p = where(p < 912, p - q + q % 8 * 38 + q // 8, p)", 63.5, 5.66},
    {"gemm", "runs dealt to the domains",
     "q = p % 304; p = where(p < 912, p - q + q % 38 * 8 + q // 38, p)", 42.1, 5.99},
    {"fused_elementwise", as_numbered, "p", 20.2, 0},
    {"fused_elementwise", "final: runs dealt to the domains",
     "run = blocks // 8; p = p % run * 8 + p // run", 20.2, 0},
    {"fused_elementwise", "a run for each domain", "p % 8 * (blocks // 8) + p // 8", 20.2, 0},
    {"layer_norm", as_numbered, "p", 66.2, 1.96},
    {"layer_norm", "final", "p // 8 % 8 * (blocks // 8) + p % 8", 99.9, 1.81},
    {"layer_norm", "a run for each domain", "p % 8 * (blocks // 8) + p // 8", 66.6, 1.96},
    {"softmax", as_numbered, "p", 33.4, 1.46},
    {"softmax", "final", "p // 8 % 8 * (blocks // 8) + p % 8", 99.9, 0.95},
    {"softmax", "runs dealt to the domains", "run = blocks // 8; p = p % run * 8 + p // run", 33.4,
     1.48},
    {"spmv", as_numbered, "p", 29.1, 0},
    {"spmv", "final: a run for each domain", "p % 8 * (blocks // 8) + p // 8", 37.3, 0},
    {"spmv", "runs dealt to the domains", "run = blocks // 8; p = p % run * 8 + p // run", 35.8, 0},
    {"stencil_2d", as_numbered, "p", 29.7, 0.18},
    {"stencil_2d", "final",
     UNTAX_ALONG_ROWS "new = id // (8 * y_blocks) * 8 + id // y_blocks % 8" UNTAX_PLACE, 99.6,
     0.14},
    {"stencil_2d", "eight columns at a time",
     UNTAX_ALONG_ROWS
     "r = id // 8; new = r % y_blocks * x_blocks + r // y_blocks * 8 + id % 8" UNTAX_PLACE,
     67.6, 0.16},
    {"stencil_2d", "a run for each domain, along rows",
     UNTAX_ALONG_ROWS "new = id // 8 + id % 8 * (blocks // 8)" UNTAX_PLACE, 4.3, 0.20},
    {"stencil_2d", "rows dealt to the domains",
     UNTAX_ALONG_ROWS "new = (y // 8 * y_blocks + id % y_blocks) * 8 + y % 8" UNTAX_PLACE, 8.0,
     0.29},
    {"transpose", as_numbered, "p", 3.5, 1.88},
    {"transpose", "final: a run for each domain, along rows",
     UNTAX_ALONG_ROWS "new = id // 8 + id % 8 * (blocks // 8)" UNTAX_PLACE, 24.3, 1.68},
    {"transpose", "runs dealt to the domains, along rows",
     UNTAX_ALONG_ROWS "run = blocks // 8; new = id % run * 8 + id // run" UNTAX_PLACE, 23.4, 1.75},
    {"transpose", "rows moved on by eighths",
     UNTAX_ALONG_ROWS "new = (id + id // 8 % 8) % blocks" UNTAX_PLACE, 3.3, 1.88},
    {"smith_waterman", as_numbered, "p", 50.9, 0.07},
    {"smith_waterman", "final: diagonals",
     "d = y + x; y = d % y_blocks; x = d // y_blocks % x_blocks", 54.7, 0.05},
    {"smith_waterman", "a run for each domain, along rows",
     UNTAX_ALONG_ROWS "new = id // 8 + id % 8 * (blocks // 8)" UNTAX_PLACE, 50.8, 0.05},
    {"smith_waterman", "both axes dealt",
     "b = y * 8 // y_blocks; c = x * 8 // x_blocks; y = y % (y_blocks // 8) * 8 + b; "
     "x = x % (x_blocks // 8) * 8 + c",
     50.7, 0.06},
    {"fdtd_2d", as_numbered, "p", 75.6, 1.05},
    {"fdtd_2d", "a run for each domain", "p // 8 + p % 8 * (blocks // 8)", 35.7, 1.46},
    {"black_scholes", as_numbered, "p", 24.6, 0.84},
};

#undef UNTAX_ALONG_ROWS
#undef UNTAX_PLACE

constexpr double points = 0.06;  // the error of a hit rate that counts as reproduced
/// Smaller differences do not count: in the logs, runs of one order differ by this much (fdtd_2d as
/// numbered has 75.6, 70.6 and 70.5 %, and 1.05 and 1.08 ms).
constexpr double hits_apart = 0.052;
constexpr double ratio_apart = 0.03;

/// Two domains represent all domains, and this many waves all waves, since the patterns repeat
/// themselves.
effort part_of(const kernel& k, const device& d) {
  constexpr double blocks = 60000;
  const double wave = 2.0 * d.processors * k.resident();
  if (k.blocks() <= blocks) return {};
  return {2, static_cast<int>(std::ceil(blocks / wave))};
}

/// The bound of the certificate in requests, as counters count them.
double counted_bound(const kernel& k, const device& d, const outcome& o) {
  const certificate limit = certify(k, d);
  const double missed = (1 - limit.limit) * o.all.requested / d.line;
  return 1 - missed / o.counted.requested;
}

std::string hundredths(double value) { return value > 0 ? fmt::format("{:.2f}", value) : ""; }

/// Whether a measured difference is in the simulation: a difference with the same sign if there is
/// one, else none above `most`.
bool agrees(double measured, double simulated, double apart, double most) {
  if (std::abs(measured) < apart) return std::abs(simulated) < most;
  return measured > 0 ? simulated > 0 : simulated < 0;
}

/// The number of kernels with bijections beside the order of their numbers, and of those among them
/// whose ranks are as measured.
struct rank_count {
  int compared = 0;
  int right = 0;

  void add(bool has_any, bool is_right) {
    compared += has_any ? 1 : 0;
    right += has_any && is_right ? 1 : 0;
  }
};

}  // namespace

std::vector<published_pattern> published_patterns(const std::string& only) {
  const device d = device_named("mi300x");
  std::vector<published_pattern> judged;
  std::map<std::string, kernel> kernels;
  double numbered_seconds = 0;
  double numbered_milliseconds = 0;
  double bound = 1;
  for (const measured_pattern& measured : patterns) {
    const bool is_asked = only.empty() || std::string(source).find(only) != std::string::npos ||
                          std::string(measured.kernel).find(only) != std::string::npos;
    if (!is_asked) continue;
    const std::string name = fmt::format("swizzleperf_{}", measured.kernel);
    const kernel& k = kernels.try_emplace(name, kernel_named(name, {}, d.sector)).first->second;
    published_pattern pattern;
    pattern.kernel = measured.kernel;
    pattern.name = measured.name;
    pattern.formula = measured.formula;
    pattern.measured_hits = measured.hits / 100;
    const std::vector<std::int64_t> numbers =
        order_formula::read(measured.formula, measured.name, k, d.domains).numbers();
    pattern.verdict = judge(numbers);
    const outcome o = simulate(k, d, {{numbers.begin(), numbers.end()}, {}}, part_of(k, d));
    if (pattern.name == as_numbered) {
      numbered_seconds = o.seconds;
      numbered_milliseconds = measured.milliseconds;
      bound = counted_bound(k, d, o);
    }
    pattern.bound = bound;
    pattern.simulated_hits = o.counted.rate();
    pattern.simulated_ratio = numbered_seconds / o.seconds;
    if (measured.milliseconds > 0)
      pattern.measured_ratio = numbered_milliseconds / measured.milliseconds;
    judged.push_back(std::move(pattern));
  }
  return judged;
}

std::string markdown_of(const std::vector<published_pattern>& patterns) {
  if (patterns.empty()) return {};
  std::string text = fmt::format(
      "{}\n\n| kernel | order | blocks done | hits, counted | simulated | no bijection above | "
      "times "
      "as quick, measured | simulated |\n|---|---|---|---|---|---|---|---|\n",
      source);
  int kernels = 0;
  int reproduced = 0;
  rank_count of_hits;
  rank_count of_times;
  for (std::size_t i = 0; i < patterns.size();) {
    const std::size_t first = i;
    bool has_hits = false;
    bool has_times = false;
    bool hits_agree = true;
    bool times_agree = true;
    for (; i < patterns.size() && patterns[i].kernel == patterns[first].kernel; ++i) {
      const published_pattern& p = patterns[i];
      const bool is_valid = p.verdict.is_bijection();
      text += fmt::format(
          "| {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % | {} | {} |\n", p.kernel, p.name,
          is_valid ? "all, once"
                   : fmt::format("**{} of {}**", p.verdict.distinct, p.verdict.blocks),
          100 * p.measured_hits, 100 * p.simulated_hits, 100 * p.bound,
          hundredths(p.measured_ratio), is_valid ? hundredths(p.simulated_ratio) : "");
      for (std::size_t j = first; j < i && is_valid; ++j) {
        const published_pattern& other = patterns[j];
        if (!other.verdict.is_bijection()) continue;
        has_hits = true;
        hits_agree =
            hits_agree && agrees(p.measured_hits - other.measured_hits,
                                 p.simulated_hits - other.simulated_hits, hits_apart, points);
        if (p.measured_ratio == 0) continue;
        has_times = true;
        times_agree =
            times_agree && agrees(p.measured_ratio - other.measured_ratio,
                                  p.simulated_ratio - other.simulated_ratio, ratio_apart, points);
      }
    }
    ++kernels;
    const published_pattern& numbered = patterns[first];
    reproduced += std::abs(numbered.measured_hits - numbered.simulated_hits) <= points ? 1 : 0;
    of_hits.add(has_hits, hits_agree);
    of_times.add(has_times, times_agree);
  }
  return text +
         fmt::format(
             "\nOf {} kernels as numbered, the hits of {} are within 6 points. Of {} with other "
             "bijections, the ranks by hits of {} are as measured; of {} with times, the ranks by "
             "time of {}.\n",
             kernels, reproduced, of_hits.compared, of_hits.right, of_times.compared,
             of_times.right);
}

}  // namespace untax::locality
