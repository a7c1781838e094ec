#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <untax/core/error.hpp>

namespace untax {

/// Numbers up to which the same plan is about the best, if the work of a run is that of its own
/// number: powers of two, the numbers halfway between them, and the capacity.
[[nodiscard]] inline std::vector<std::int64_t> number_ends(std::int64_t capacity) {
  std::vector<std::int64_t> ends;
  for (std::int64_t power = 1; power < capacity; power *= 2) {
    ends.push_back(power);
    if (power > 1 && power + power / 2 < capacity) ends.push_back(power + power / 2);
  }
  ends.push_back(capacity);
  return ends;
}

/// As `number_ends`, for the rows of a GEMM, for which tiles of one shape or another are the best:
/// 4 ends of each octave from 128 rows on, and 8 from 1024 rows on. From 256 rows on they are
/// multiples of tiles of 64 rows, also for the rows of two ranks.
[[nodiscard]] inline std::vector<std::int64_t> row_ends(std::int64_t capacity) {
  constexpr std::int64_t first = 128;
  std::vector<std::int64_t> ends = number_ends(std::min(capacity, first));
  if (capacity <= first) return ends;
  for (std::int64_t power = first; power < capacity; power *= 2) {
    const std::int64_t parts = power < 1024 ? 4 : 8;
    for (std::int64_t i = 1; i <= parts && power + power / parts * i < capacity; ++i)
      ends.push_back(power + power / parts * i);
  }
  ends.push_back(capacity);
  return ends;
}

/// The most rows with which a run has the plan of an end before `end`, in either kind of ends: an
/// end is at most 1.5 times the one before, or twice if that is 1.
[[nodiscard]] constexpr std::int64_t rows_before(std::int64_t end) noexcept {
  return end - end / 3 - 1;
}

/// The plans of an operator with a capacity, made when it is planned and looked up by rows.
template <class Plan>
class row_table {
 public:
  /// For these ends, which ascend to the capacity. `make(rows)` plans for `rows` rows. The plan for
  /// the most is made first, so that rooms that plans share fit all of them.
  template <class Make>
  row_table(std::vector<std::int64_t> ends, const Make& make) : ends_(std::move(ends)) {
    plans_.reserve(ends_.size());
    try {
      for (auto end = ends_.rbegin(); end != ends_.rend(); ++end) plans_.push_back(make(*end));
    } catch (const error& e) {
      // All ranks are out of memory, so that all of them can free their plans together.
      if (e.code() == errc::out_of_memory) {
        while (!plans_.empty()) plans_.pop_back();
      }
      throw;
    }
    std::reverse(plans_.begin(), plans_.end());
  }

  /// The plan for 1 to capacity rows.
  [[nodiscard]] const Plan& at(std::int64_t rows) const {
    const auto end = std::lower_bound(ends_.begin(), ends_.end(), rows);
    return plans_[static_cast<std::size_t>(end - ends_.begin())];
  }
  [[nodiscard]] std::int64_t capacity() const noexcept { return ends_.back(); }
  [[nodiscard]] const std::vector<std::int64_t>& ends() const noexcept { return ends_; }

 private:
  std::vector<std::int64_t> ends_;
  std::vector<Plan> plans_;
};

}  // namespace untax
