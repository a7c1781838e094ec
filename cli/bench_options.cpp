#include "bench_options.hpp"

#include <limits>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "arguments.hpp"

namespace untax::cli {
namespace {

constexpr int most_bench_ranks = 64;

}  // namespace

void add_common_options(CLI::App& suite, bench_options& options) {
  suite.add_option("--repeat", options.repeats, "timed runs of everything")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  suite
      .add_option("--json", options.json,
                  "write the figures as JSON; - for stdout instead of the table")
      ->check(writable_file());
}

void add_ranks_option(CLI::App& suite, bench_options& options, int least) {
  const auto enough = [&suite, least](const std::string& text) -> std::string {
    if (least < 2 || text != "1") return {};
    return fmt::format("the suite {} measures transfers between two GPUs or more",
                       suite.get_name());
  };
  const auto once = [&suite](const std::vector<int>& counts) {
    if (counts.size() == 1) return;
    throw error(errc::invalid_argument,
                fmt::format("--ranks is there {} times; the suite {} takes it once", counts.size(),
                            suite.get_name()));
  };
  suite
      .add_option_function<std::vector<int>>(
          "--ranks",
          [&options, once](const std::vector<int>& counts) {
            once(counts);
            options.rank_counts = counts;
          },
          "GPUs; all of them by default")
      ->allow_extra_args(false)
      ->check(between(1, most_bench_ranks))
      ->check(CLI::Validator(enough, ""));
}

void add_rank_counts_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--ranks", options.rank_counts, meaning)
      ->allow_extra_args(false)
      ->check(between(1, most_bench_ranks));
}

void add_sizes_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--size", options.sizes, meaning + "; several may be given")
      ->allow_extra_args(false)
      ->check(between(1, std::numeric_limits<int>::max()));
}

void add_problem_options(CLI::App& suite, bench_options& options, const std::string& meaning) {
  constexpr int most_problems = 100'000;
  suite.add_option("--problems", options.problems, meaning)->check(between(1, most_problems));
  suite.add_option("--seed", options.seed, "of what is drawn at random")->capture_default_str();
}

void add_seconds_option(CLI::App& suite, bench_options& options, const std::string& meaning) {
  suite.add_option("--seconds", options.seconds, meaning)->check(between(1, 86'400));
}

}  // namespace untax::cli
