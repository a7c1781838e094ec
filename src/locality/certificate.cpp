#include <untax/locality/certificate.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "src/locality/footprint.hpp"

namespace untax::locality {
namespace {

/// The number of blocks that a domain runs at the same time.
double places(const kernel& k, const device& d) {
  return static_cast<double>(d.processors) * k.resident();
}

/// The number of blocks that the dispatch gives to each domain.
std::vector<double> assigned_to(int blocks, const device& d) {
  std::vector<double> made(static_cast<std::size_t>(d.domains));
  const int round = d.domains * d.chunk;
  for (int i = 0; i < d.domains; ++i) {
    const int rest = std::clamp(blocks % round - i * d.chunk, 0, d.chunk);
    const int rounds = blocks / round;
    made[static_cast<std::size_t>(i)] = rounds * d.chunk + rest;
  }
  return made;
}

/// A lower bound on the bytes that a domain misses if it runs its blocks in windows of `window`
/// blocks. A window misses at least the bytes that it needs beyond those that the cache can have
/// kept.
double missed_in_windows(const footprint& f, const device& d, double blocks, double window) {
  if (blocks < 1) return 0;
  window = std::min(window, blocks);
  const double others = std::floor(blocks / window) - 1;
  const double rest = blocks - (others + 1) * window;
  const double each = f.whole(window);
  const double last = rest >= 1 ? std::max(0.0, f.whole(rest) - d.cache.bytes) : 0;
  return each + others * std::max(0.0, each - d.cache.bytes) + last;
}

double missed_in_waves(const footprint& f, const kernel& k, const device& d) {
  const std::vector<double> blocks = assigned_to(k.blocks(), d);
  double most = 0;
  for (double waves = 1;; waves = std::ceil(waves * 1.25)) {
    const double window = waves * places(k, d);
    double missed = 0;
    double before = -1;
    double of_before = 0;
    for (const double mine : blocks) {
      if (mine != before) of_before = missed_in_windows(f, d, mine, window);
      before = mine;
      missed += of_before;
    }
    most = std::max(most, missed);
    if (window >= blocks.front()) return most;
  }
}

/// The largest convex function of the number of blocks under way that nowhere exceeds the bytes
/// that one step of a block needs.
class bytes_per_step {
 public:
  bytes_per_step(const footprint& f, double most) {
    double least = -1;
    std::vector<double> at{1};
    while (at.back() < most)
      at.push_back(std::min(most, std::max(at.back() + 1, std::floor(at.back() * 1.02))));
    std::vector<double> value;
    for (const double blocks : at) {
      const double slope = f.of_step(blocks) / blocks;
      least = least < 0 ? slope : std::min(least, slope);
      value.push_back(least);
    }
    // Between two samples, the function is at least its value at the second one.
    for (std::size_t i = 0; i < at.size(); ++i) add(at[i], value[std::min(i + 1, at.size() - 1)]);
  }

  [[nodiscard]] double operator()(double blocks) const {
    if (blocks >= x_.back()) return y_.back();
    const auto after =
        static_cast<std::size_t>(std::upper_bound(x_.begin(), x_.end(), blocks) - x_.begin());
    if (after == 0) return y_.front();
    const double part = (blocks - x_[after - 1]) / (x_[after] - x_[after - 1]);
    return y_[after - 1] + part * (y_[after] - y_[after - 1]);
  }

 private:
  /// Adds a point to the lower convex hull. Calls have ascending `x`.
  void add(double x, double y) {
    while (x_.size() >= 2) {
      const std::size_t n = x_.size();
      const double cross =
          (x_[n - 1] - x_[n - 2]) * (y - y_[n - 2]) - (y_[n - 1] - y_[n - 2]) * (x - x_[n - 2]);
      if (cross > 0) break;
      x_.pop_back();
      y_.pop_back();
    }
    x_.push_back(x);
    y_.push_back(y);
  }

  std::vector<double> x_;
  std::vector<double> y_;
};

/// A lower bound on the missed bytes for any timing. The time of each domain is cut into intervals
/// of `length` block steps. Steps after the last cut of a domain are not counted, and domains may
/// have different numbers of steps.
double missed_at_any_time(const footprint& f, const kernel& k, const device& d) {
  const double under_way = places(k, d);
  const bytes_per_step bytes(f, k.blocks() + under_way);
  double most = 0;
  for (double length = under_way; length < f.steps(); length *= 1.1) {
    const double parts = std::floor(f.steps() / length - d.domains);
    if (parts < 1) break;
    const double active = under_way + k.blocks() / parts;
    most = std::max(most, parts * (length * bytes(active) - d.cache.bytes));
  }
  return most + f.outside_steps();
}

}  // namespace

certificate certify(const kernel& k, const device& d) {
  const footprint f(k, d);
  const auto rate = [&](double missed) { return std::clamp(1 - missed / f.requested(), 0.0, 1.0); };
  certificate result;
  result.compulsory = rate(f.distinct());
  result.in_waves = rate(missed_in_waves(f, k, d));
  result.any_timing = rate(missed_at_any_time(f, k, d));
  // Blocks of several steps that begin one after the other do not run in waves.
  const bool is_rolling = k.has_lines() && (k.steps(0) > 1 || !k.has_equal_steps());
  const double other = k.drifts() || is_rolling ? result.any_timing : result.in_waves;
  result.limit = std::min(result.compulsory, other);
  const double once = f.distinct() / f.requested();
  if (result.limit == result.compulsory) {
    result.because = once > 0.999
                         ? "every byte is asked for once, so that there is nothing to find in "
                           "a cache"
                         : "every piece of memory has to come once";
  } else if (k.drifts()) {
    result.because = fmt::format(
        "a cache of {:.0f} MiB is too small for the bytes that {} blocks at a time read, whatever "
        "their timing",
        d.cache.bytes / (1 << 20), d.processors * k.resident());
  } else {
    result.because = fmt::format(
        "a cache of {:.0f} MiB is too small for the different bytes that {} blocks at a time read",
        d.cache.bytes / (1 << 20), d.processors * k.resident());
  }
  return result;
}

}  // namespace untax::locality
