#include "bench/suites/flash_attention.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <untax/core/error.hpp>
#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/flash_memory.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {
namespace {

using order::attention_order;

struct named_order {
  attention_order how;
  const char* name;
};
constexpr named_order orders[] = {{attention_order::automatic, "automatic"},
                                  {attention_order::head_first, "head_first"},
                                  {attention_order::block_first, "block_first"},
                                  {attention_order::group_first, "group_first"},
                                  {attention_order::sections, "sections"}};

class flash_trial {
 public:
  flash_trial(const flash_problem& p, const gpu::stopwatch& clock)
      : problem_(p), clock_(clock), memory_(p, clock.stream()) {}

  [[nodiscard]] std::vector<flash_figure> times(int repeats, bool every_order) const {
    std::vector<gpu::flash_runner> ops;
    std::vector<flash_figure> figures;
    for (const named_order& order : orders) {
      if (!every_order && !figures.empty()) break;
      ops.emplace_back(memory_.shape(), order.how);
      figures.push_back({order.name, {}});
    }
    // Enough runs for some milliseconds.
    const int runs = static_cast<int>(std::clamp(2e12 / problem_.flops(), 1.0, 50.0));
    std::vector<std::vector<double>> seconds(ops.size());
    // In a new random order each time, since a run leaves its clock rate and its caches behind.
    std::vector<std::size_t> turn(ops.size());
    std::iota(turn.begin(), turn.end(), std::size_t{0});
    std::mt19937 random(1);
    for (int repeat = -1; repeat < repeats; ++repeat) {
      std::ranges::shuffle(turn, random);
      for (const std::size_t i : turn) {
        clock_.start();
        for (int run = 0; run < runs; ++run) ops[i].run(memory_.operands(), {clock_.stream()});
        const double one = clock_.stop() / runs;
        if (repeat >= 0) seconds[i].push_back(one);
      }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) figures[i].time = spread_of(std::move(seconds[i]));
    return figures;
  }

 private:
  flash_problem problem_;
  const gpu::stopwatch& clock_;
  flash_memory memory_;
};

}  // namespace

flash_report run_flash_suite(const flash_suite_options& options) {
  flash_report report{device_name("flash-attention"), {}};
  const gpu::stopwatch clock;
  for (const flash_problem& problem : flash_problems(options)) {
    const flash_trial trial(problem, clock);
    report.rows.push_back({problem, trial.times(options.repeats, options.every_order)});
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
