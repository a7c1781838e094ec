#include "bench/choosers/async_tp.hpp"

namespace untax::bench {
namespace {

constexpr std::int64_t small_result = 2'457'600;  // elements
constexpr std::int64_t small_input = 24'903'680;  // elements

}  // namespace

bool async_tp_fuses(const tuned_problem& p) noexcept {
  if (p.m * p.n <= small_result) return p.k <= 9'600 || p.n > 34'816;
  if (p.m * p.k <= small_input) return p.n > 6'144 && p.m <= 3'072;
  return p.n <= 40'960 || p.m > 12'288;
}

}  // namespace untax::bench
