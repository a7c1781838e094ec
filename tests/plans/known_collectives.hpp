#pragma once

#include <cstdint>

#include <untax/ops/collectives.hpp>
#include <untax/tile/shard.hpp>

// Collectives for tests of any count: the elements that a rank passes and gets, and those of the
// result.

namespace untax::testing {

/// Element `at` of rank `rank` in a run.
[[nodiscard]] inline float number(std::uint64_t run, int rank, std::int64_t at) {
  const auto x = run * 31 + static_cast<std::uint64_t>(rank) * 17 + static_cast<std::uint64_t>(at);
  return static_cast<float>(x * 2654435761U % 97);
}

/// A run of a collective, as one rank sees it.
struct view {
  std::int64_t count = 0;
  int world = 1;
  int rank = 0;
  std::uint64_t run = 1;

  [[nodiscard]] range shard() const { return sharding{count, world}.of(rank); }
  [[nodiscard]] float sum(std::int64_t at) const {
    float total = 0;
    for (int r = 0; r < world; ++r) total += number(run, r, at);
    return total;
  }
};

/// A collective of a test: the elements that a rank passes and gets, and those of the result.
template <class Op>
struct known;

template <>
struct known<all_gather> {
  static constexpr const char* name = "all_gather";
  static std::int64_t in(const view& v) { return v.shard().size; }
  static std::int64_t out(const view& v) { return v.count; }
  static float result(const view& v, std::int64_t at) {
    const std::int64_t full = sharding{v.count, v.world}.full();
    return number(v.run, static_cast<int>(at / full), at % full);
  }
};

template <>
struct known<reduce_scatter> {
  static constexpr const char* name = "reduce_scatter";
  static std::int64_t in(const view& v) { return v.count; }
  static std::int64_t out(const view& v) { return v.shard().size; }
  static float result(const view& v, std::int64_t at) { return v.sum(v.shard().begin + at); }
};

template <>
struct known<all_reduce> {
  static constexpr const char* name = "all_reduce";
  static std::int64_t in(const view& v) { return v.count; }
  static std::int64_t out(const view& v) { return v.count; }
  static float result(const view& v, std::int64_t at) { return v.sum(at); }
};

template <>
struct known<all_to_all> {
  static constexpr const char* name = "all_to_all";
  static std::int64_t in(const view& v) { return v.count * v.world; }
  static std::int64_t out(const view& v) { return v.count * v.world; }
  static float result(const view& v, std::int64_t at) {
    return number(v.run, static_cast<int>(at / v.count), v.rank * v.count + at % v.count);
  }
};

template <>
struct known<broadcast> {
  static constexpr const char* name = "broadcast";
  static std::int64_t in(const view& v) { return v.rank == 0 ? v.count : 0; }
  static std::int64_t out(const view& v) { return v.count; }
  static float result(const view& v, std::int64_t at) { return number(v.run, 0, at); }
};

template <class Op>
struct problem_of;
template <>
struct problem_of<all_gather> : all_gather_problem {};
template <>
struct problem_of<reduce_scatter> : reduce_scatter_problem {};
template <>
struct problem_of<all_reduce> : all_reduce_problem {};
template <>
struct problem_of<all_to_all> : all_to_all_problem {};
template <>
struct problem_of<broadcast> : broadcast_problem {};

}  // namespace untax::testing
