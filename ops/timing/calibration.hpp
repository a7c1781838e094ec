#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace untax {

/// The key of a figure: its kind, and three sizes.
struct calibration_key {
  std::string what;  ///< "all_gather_gemm rows fused_sequential", "NCCL all_reduce"
  double m = 1;
  double n = 1;
  double k = 1;
};

/// The factors by which measured figures are longer than the timing engine predicts, by kind and
/// size. Fitted to measurements of one and two GPUs.
class calibration {
 public:
  /// Several measurements with one key count by their geometric mean.
  void add(const calibration_key& key, double ratio);
  /// The factor of a figure; 1 if nothing of the kind was measured. Entries with the same n and k
  /// are a line, along which the logarithm of the factor is linear in log m, and constant beyond
  /// its ends. The result is the mean over the four nearest lines in (log n, log k), weighted by 1
  /// / distance^2.
  [[nodiscard]] double ratio(const calibration_key& key) const;

  /// Whether anything of the kind was measured.
  [[nodiscard]] bool knows(std::string_view what) const { return lines_.contains(what); }
  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
  [[nodiscard]] std::size_t entries() const;

  std::string device;
  std::vector<std::string> files;  ///< the files that the calibration was fitted to

 private:
  friend std::string to_json(const calibration& c);
  struct value {
    double log_sum = 0;
    int count = 0;
  };
  using line = std::map<double, value>;  // by m
  std::map<std::string, std::map<std::pair<double, double>, line>, std::less<>> lines_;
};

/// Reads the text of `to_json`. Throws `invalid_argument` that names `origin` and the entry.
[[nodiscard]] calibration parse_calibration(std::string_view text, const std::string& origin);
[[nodiscard]] calibration load_calibration(const std::string& path);
/// JSON with one line for each entry.
[[nodiscard]] std::string to_json(const calibration& c);

}  // namespace untax
