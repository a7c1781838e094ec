#include "bench/suites/flash_attention.hpp"

#include <algorithm>
#include <random>

namespace untax::bench {
namespace {

/// Limits of problems, beyond which one run takes too long.
constexpr double most_flops = 2e13;
constexpr double most_tensor_bytes = 4e9;

std::vector<flash_problem> flash_grid() {
  std::vector<flash_problem> problems;
  const auto both = [&](flash_problem p) {
    for (const bool causal : {false, true}) {
      p.causal = causal;
      p.keys = p.queries;
      problems.push_back(p);
    }
  };
  for (const int length : {1024, 2048, 4096, 8192})
    both({.batch = 4, .heads = 48, .kv_heads = 48, .queries = length});
  for (const int length : {8192, 32768}) both({.heads = 64, .kv_heads = 8, .queries = length});
  both({.batch = 2, .heads = 16, .kv_heads = 16, .head_dim = 64, .queries = 16384});
  both({.batch = 4, .heads = 32, .kv_heads = 32, .head_dim = 64, .queries = 4096});
  both({.batch = 2, .heads = 16, .kv_heads = 16, .head_dim = 256, .queries = 8192});
  both({.batch = 4, .heads = 16, .kv_heads = 4, .head_dim = 256, .queries = 2048});
  return problems;
}

double bytes_of(const flash_problem& p) {
  return 4.0 * p.batch * p.head_dim *
         (static_cast<double>(p.queries) * p.heads + static_cast<double>(p.keys) * p.kv_heads);
}

}  // namespace

double flash_problem::flops() const noexcept {
  const double rows = queries;
  const double elements = rows * keys;
  // Row i attends to keys - queries + 1 + i keys.
  const double seen = !causal           ? elements
                      : keys >= queries ? elements - rows * (rows - 1) / 2
                                        : static_cast<double>(keys) * (keys + 1) / 2;
  return 4.0 * batch * heads * head_dim * seen;
}

std::vector<flash_problem> flash_problems(const flash_suite_options& options) {
  if (options.problems == 0) return flash_grid();
  std::mt19937_64 random(options.seed);
  const auto pick = [&](const std::vector<int>& from) { return from[random() % from.size()]; };
  std::vector<flash_problem> problems;
  while (static_cast<int>(problems.size()) < options.problems) {
    flash_problem p;
    p.head_dim = pick({64, 128, 128, 128, 256});
    p.kv_heads = pick({1, 2, 4, 8, 16, 32});
    p.heads = p.kv_heads * pick({1, 1, 4, 8});
    p.batch = pick({1, 2, 3, 4, 8});
    const int power = 1 << pick({9, 10, 11, 12, 13});
    p.queries = power + static_cast<int>(random() % static_cast<unsigned>(power));
    p.keys = random() % 4 == 0 ? p.queries + static_cast<int>(random() % 4096) : p.queries;
    p.causal = random() % 2 == 0;
    // Shorter runs would measure the start of kernels.
    if (p.flops() > most_flops || p.flops() < 5e10 || bytes_of(p) > most_tensor_bytes) continue;
    problems.push_back(p);
  }
  return problems;
}

}  // namespace untax::bench
