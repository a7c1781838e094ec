#pragma once

#include <cstdint>

#include "ops/choice/table.hpp"

namespace choice_test {

using untax::gather_axis;
using untax::pattern;
using untax::tuned_problem;
using untax::tuning_table;

inline tuned_problem gathered(std::int64_t m, std::int64_t n, std::int64_t k, int ranks = 4) {
  return {"all_gather_gemm", gather_axis::rows, ranks, m, n, k};
}

/// The kernels that run here, as tests have it.
inline constexpr const char* these_kernels = "0123456789abcdef";

inline tuning_table empty_table() {
  return {.device = "GPU X",
          .date = "2026-11-21T10:20:30Z",
          .commit = "0123abc",
          .kernels = these_kernels,
          .version = "0.1.0",
          .driver = "580",
          .library = "some libraries",
          .repeats = 7,
          .rates = {.flops = 8e14, .memory = 4e12, .link = 4e11},
          .entries = {}};
}

/// 4 ranks: at m 64 the library is the quickest, at 4096 fused_specialized is; and one scatter.
inline tuning_table sample_table() {
  tuning_table table = empty_table();
  for (const std::int64_t n : {4096, 8192}) {
    table.entries.push_back({gathered(64, n, 8192),
                             {{pattern::bulk_library, 2.5e-5},
                              {pattern::fused_specialized, 3e-5},
                              {pattern::fused_sequential, 4e-5}}});
    table.entries.push_back({gathered(4096, n, 8192),
                             {{pattern::bulk_library, 9e-4},
                              {pattern::fused_specialized, 7e-4},
                              {pattern::fused_sequential, 8e-4}}});
  }
  table.entries.push_back({{"gemm_all_scatter", gather_axis::rows, 4, 512, 4096, 4096},
                           {{pattern::bulk_library, 5e-5}, {pattern::fused_sequential, 4e-5}}});
  return table;
}

}  // namespace choice_test
