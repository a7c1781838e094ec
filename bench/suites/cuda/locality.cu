#include "bench/suites/locality.hpp"

#include <untax/taxes/timing.hpp>

#include "bench/suites/cuda/replay.hpp"
#include "src/symmetric/cuda/stopwatch.hpp"

namespace untax::bench {

replay_report run_replay_suite(const replay_suite_options& options) {
  replay_report report;
  report.device = device_name("locality");
  const std::optional<locality::device> d = description_of(report.device);
  if (d) report.described = d->name;
  const gpu::stopwatch clock;
  const std::vector<replay_problem> problems = replay_problems(options);
  if (options.begin) options.begin(static_cast<std::int64_t>(problems.size()));
  for (const replay_problem& problem : problems) {
    const locality::kernel k = problem.kernel(d ? d->sector : 32);
    const locality::schedule s = problem.schedule(k, d ? d->domains : 1);
    const replay trial(k, s, {.step_seconds = step_seconds(k, d)});
    std::vector<double> seconds;
    for (int repeat = -1; repeat < options.repeats; ++repeat) {
      clock.start();
      trial.run(clock.stream());
      const double one = clock.stop();
      if (repeat >= 0) seconds.push_back(one);
    }
    replay_row row;
    row.problem = problem;
    row.blocks = k.blocks();
    row.requested_bytes = replayed_bytes(k);
    row.launches = options.repeats + 1;
    row.time = spread_of(std::move(seconds));
    if (d) {
      row.simulated = locality::simulate(k, *d, s);
    }
    report.rows.push_back(std::move(row));
    if (options.progress) options.progress();
  }
  return report;
}

}  // namespace untax::bench
