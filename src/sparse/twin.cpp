#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <unordered_set>

#include <untax/sparse/profile.hpp>

namespace untax::sparse {
namespace {

/// Random numbers, without std distributions, whose results differ between libraries.
class dice {
 public:
  explicit dice(std::uint64_t seed) : bits_(seed) {}
  /// 0 to `count` - 1.
  [[nodiscard]] std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(count));
  }
  /// From -1 to 1.
  [[nodiscard]] double value() { return static_cast<double>(bits_() >> 11U) * 0x1p-52 - 1; }

 private:
  std::mt19937_64 bits_;
};

[[noreturn]] void refuse_twin(const std::string& what) {
  throw error(errc::invalid_argument, "a twin: " + what);
}

void require_possible(const row_profile& p) {
  const std::array quantiles = {p.row_min, p.row_q1, p.row_median, p.row_q3, p.row_max};
  if (p.rows < 0 || p.cols < 0 || p.cols > std::numeric_limits<std::int32_t>::max())
    refuse_twin(fmt::format("{} x {} is not a size", p.rows, p.cols));
  if (!std::ranges::is_sorted(quantiles) || p.row_min < 0 ||
      p.row_max > static_cast<double>(p.cols)) {
    refuse_twin(
        fmt::format("rows of {} to {} elements, quartiles {}, {} and {}, of {} columns; these "
                    "have to ascend",
                    p.row_min, p.row_max, p.row_q1, p.row_median, p.row_q3, p.cols));
  }
  const auto rows = static_cast<double>(p.rows);
  const auto elements = static_cast<double>(p.nnz);
  if (elements < rows * p.row_min || elements > rows * p.row_max)
    refuse_twin(fmt::format("{} rows of {} to {} elements cannot have {}", p.rows, p.row_min,
                            p.row_max, p.nnz));
}

/// The shape of row lengths above the third quartile: `at` maps a part `t` of these rows to a part
/// of the distance to the longest row. A linear and a steep part give its mean and mean square.
struct tail {
  double steep = 1;   ///< exponent of t in the steep part
  double weight = 0;  ///< weight of the steep part

  [[nodiscard]] double at(double t) const { return (1 - weight) * t + weight * std::pow(t, steep); }
  [[nodiscard]] double square() const {
    return (1 - weight) * (1 - weight) / 3 + 2 * weight * (1 - weight) / (steep + 2) +
           weight * weight / (2 * steep + 1);
  }
};

/// The tail with this mean whose mean square is nearest to `square`.
tail tail_with(double mean, double square) {
  constexpr double least_mean = 1e-7;
  constexpr int steps = 400;
  mean = std::clamp(mean, least_mean, 1 - least_mean);
  tail best{1 / mean - 1, 1};
  for (int i = 1; mean < 0.5 && i <= steps; ++i) {
    // A steep part is steeper than the power of t that alone has this mean, so a linear part is
    // added.
    const double steep = (1 / mean - 1) * std::pow(1e4, static_cast<double>(i) / steps);
    const tail t{steep, (0.5 - mean) / (0.5 - 1 / (steep + 1))};
    if (std::abs(t.square() - square) < std::abs(best.square() - square)) best = t;
  }
  return best;
}

/// Row lengths with the quartiles, the extremes and, if possible, the elements of the profile.
std::vector<std::int64_t> lengths_of(const row_profile& p, dice& random) {
  const auto rows = static_cast<double>(p.rows);
  std::vector<double> wanted(static_cast<std::size_t>(p.rows));
  const std::array quantiles = {p.row_min, p.row_q1, p.row_median, p.row_q3};
  const double mean = static_cast<double>(p.nnz) / rows;
  double sum = 0;
  double squares = 0;
  const auto first = static_cast<std::int64_t>(std::ceil(0.75 * (rows - 1)));
  for (std::int64_t i = 0; i < first; ++i) {
    const double place = 4 * static_cast<double>(i) / std::max(rows - 1, 1.0);
    const auto quarter = static_cast<std::size_t>(std::min(place, 2.999));
    const double from = quantiles[quarter];
    const double value =
        from + (place - static_cast<double>(quarter)) * (quantiles[quarter + 1] - from);
    wanted[static_cast<std::size_t>(i)] = value;
    sum += value;
    squares += (value - mean) * (value - mean);
  }
  const auto above = static_cast<double>(p.rows - first);
  const double span = p.row_max - p.row_q3;
  if (span > 0) {
    const double part = (static_cast<double>(p.nnz) - sum) / above - p.row_q3;
    // The sum of (q3 + span f - mean)^2 over these rows is the rest of the variance.
    const double offset = p.row_q3 - mean;
    const double left = (p.row_variance * rows - squares) / above;
    const double square = (left - offset * offset - 2 * offset * part) / (span * span);
    const tail shape = tail_with(part / span, square);
    for (std::int64_t i = first; i < p.rows; ++i)
      wanted[static_cast<std::size_t>(i)] =
          p.row_q3 + span * shape.at(static_cast<double>(i - first + 1) / above);
  } else {
    std::fill(wanted.begin() + first, wanted.end(), p.row_q3);
  }
  // Rounds so that running sums agree, then corrects the total one element at a time.
  std::vector<std::int64_t> lengths(wanted.size());
  const auto least = static_cast<std::int64_t>(p.row_min);
  const auto most = static_cast<std::int64_t>(p.row_max);
  double owed = 0;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    owed += wanted[i];
    lengths[i] = std::clamp(static_cast<std::int64_t>(std::llround(owed)) - total, least, most);
    total += lengths[i];
    owed = std::clamp(owed, static_cast<double>(total) - 1, static_cast<double>(total) + 1);
  }
  lengths.front() = least;
  lengths.back() = most;
  total = 0;
  for (const std::int64_t length : lengths) total += length;
  const auto inner = static_cast<std::int64_t>(lengths.size()) - 2;
  while (total != p.nnz && inner > 0) {
    const std::int64_t step = total < p.nnz ? 1 : -1;
    bool moved = false;
    const std::int64_t begin = random.below(inner);
    for (std::int64_t i = 0; i < inner && total != p.nnz; ++i) {
      std::int64_t& length = lengths[static_cast<std::size_t>(1 + (begin + i) % inner)];
      if (length + step < least || length + step > most) continue;
      length += step;
      total += step;
      moved = true;
    }
    if (!moved) break;
  }
  return lengths;
}

/// Appends `wanted` different ones of the `count` columns from `first` on, in ascending order.
void draw(std::int64_t first, std::int64_t count, std::int64_t wanted, dice& random,
          std::vector<std::int32_t>& to) {
  const std::size_t begin = to.size();
  if (wanted * 3 > count) {
    // Selection sampling: takes each column with the probability that remains.
    for (std::int64_t c = 0; c < count && wanted > 0; ++c) {
      if (random.below(count - c) >= wanted) continue;
      to.push_back(static_cast<std::int32_t>(first + c));
      --wanted;
    }
    return;
  }
  std::unordered_set<std::int64_t> taken;
  while (wanted > 0) {
    const std::int64_t c = random.below(count);
    if (!taken.insert(c).second) continue;
    to.push_back(static_cast<std::int32_t>(first + c));
    --wanted;
  }
  std::sort(to.begin() + static_cast<std::ptrdiff_t>(begin), to.end());
}

}  // namespace

csr<double, std::int64_t> twin_of(const row_profile& like, std::int64_t band, std::uint64_t seed) {
  require_possible(like);
  csr<double, std::int64_t> result;
  result.rows = like.rows;
  result.cols = like.cols;
  if (like.rows == 0) return result;
  dice random(seed);
  std::vector<std::int64_t> lengths = lengths_of(like, random);
  for (std::int64_t i = like.rows; i > 1; --i)
    std::swap(lengths[static_cast<std::size_t>(i - 1)],
              lengths[static_cast<std::size_t>(random.below(i))]);
  result.columns.reserve(static_cast<std::size_t>(like.nnz));
  for (std::int64_t r = 0; r < like.rows; ++r) {
    const std::int64_t length = lengths[static_cast<std::size_t>(r)];
    std::int64_t first = 0;
    std::int64_t count = like.cols;
    if (band > 0) {
      count = std::min(std::max(2 * band + 1, length), like.cols);
      const auto place = static_cast<std::int64_t>(
          static_cast<double>(r) * static_cast<double>(like.cols) / static_cast<double>(like.rows));
      first = std::clamp<std::int64_t>(place - count / 2, 0, like.cols - count);
    }
    draw(first, count, length, random, result.columns);
    result.offsets.push_back(result.offsets.back() + length);
  }
  for (std::size_t i = 0; i < result.columns.size(); ++i) result.values.push_back(random.value());
  return result;
}

}  // namespace untax::sparse
