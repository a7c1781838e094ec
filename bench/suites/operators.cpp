#include "bench/suites/operators.hpp"

#include <untax/world/launch.hpp>

#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"

namespace untax::bench {
namespace {

// Activations of few and of many tokens with the weights of a small model, the same in 16 bits, and
// a shape whose sizes have no common divisors.
constexpr gemm_problem shapes[] = {
    {.m = 16, .n = 2048, .k = 2048},
    {.m = 512, .n = 1024, .k = 1024},
    {.m = 64, .n = 2048, .k = 1024, .type = dtype::bf16},
    {.m = 333, .n = 257, .k = 130},
};

std::vector<pattern_request> requests_of(const operator_suite_options& options) {
  std::vector<pattern_request> requests;
  for (const operator_entry& entry : operators()) {
    for (gemm_problem problem : shapes) {
      for (const auto gather : {gather_axis::rows, gather_axis::k}) {
        if (gather == gather_axis::k && !entry.gathers) continue;
        problem.gather = gather;
        pattern_request request;
        request.what = subject_of(entry, problem, {});
        request.patterns = all_patterns_of(request.what);
        request.repeats = options.repeats;
        request.progress = options.progress;
        requests.push_back(std::move(request));
      }
    }
  }
  return requests;
}

}  // namespace

std::vector<operator_figures> run_operator_suite(const operator_suite_options& options) {
  std::vector<operator_figures> suites;
  for (const pattern_request& request : requests_of(options)) {
    require_memory(request, options.ranks);
    operator_figures figures{request.what, {}};
    world_options settings;
    settings.heap_bytes = heap_for(request, options.ranks);
    run_threads(
        options.ranks,
        [&](world& w) {
          auto results = run_patterns(w, request);
          if (w.rank() == 0) figures.results = std::move(results);
        },
        settings);
    suites.push_back(std::move(figures));
  }
  return suites;
}

int steps_of(const operator_suite_options& options) {
  int steps = 0;
  for (const pattern_request& request : requests_of(options)) steps += steps_of(request);
  return steps;
}

}  // namespace untax::bench
