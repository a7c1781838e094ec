#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/pattern.hpp>
#include <untax/core/types.hpp>
#include <untax/ops/problems.hpp>

#include "ops/common/reduce_target.hpp"

namespace untax {

/// The properties of a problem that determine the speed of each pattern on a given device.
struct tuned_problem {
  std::string operator_name;               ///< of a GEMM operator
  gather_axis gather = gather_axis::rows;  ///< of operators that gather
  int ranks = 2;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// For operators that sum over ranks: fp32, or bf16 for partial results of 16 bits.
  dtype partials = dtype::bf16;

  bool operator==(const tuned_problem&) const = default;

  [[nodiscard]] bool gathers() const;
  /// Whether n counts the columns of all ranks.
  [[nodiscard]] bool columns_sharded() const;
  /// The destination of sums over ranks, if there are any: then k counts the parts of all ranks.
  [[nodiscard]] std::optional<reduce_target> sums_to() const;
};

/// "64 x 7168 x 8192", with ", k" where A is gathered by k.
[[nodiscard]] std::string shape_text(const tuned_problem& problem);
/// "all_gather_gemm, rows, 4 ranks", "gemm_reduce_scatter, fp32 partials, 4 ranks".
[[nodiscard]] std::string family_text(const tuned_problem& problem);
/// Whether only the sizes differ.
[[nodiscard]] bool same_family(const tuned_problem& a, const tuned_problem& b) noexcept;

/// The seconds of each pattern, of one run in a graph; patterns that are missing were refused.
struct tuning_entry {
  tuned_problem problem;
  std::map<pattern, double> seconds;
};

/// The shortest possible seconds of parts of a problem.
struct device_bounds {
  double compute = 0;  ///< the arithmetic, or reading the weights
  double link = 0;     ///< sending the bytes of a rank
};

/// The peak rates of the device, measured.
struct device_rates {
  double flops = 0;   ///< additions and multiplications a second
  double memory = 0;  ///< bytes a second that are read
  double link = 0;    ///< bytes a second that a rank sends

  /// The bounds for elements of 2 bytes.
  [[nodiscard]] device_bounds bounds(const tuned_problem& problem) const;
};

/// The measurements of `untax bench tune` on one kind of machine.
struct tuning_table {
  std::string device;        ///< "NVIDIA H200"
  dtype type = dtype::bf16;  ///< type of the elements; other types of 16 bits take as long
  std::string date;          ///< ISO 8601
  std::string commit;
  /// The hash of the kernels that were measured (kernel_sources.hpp); empty if it was not recorded.
  std::string kernels;
  std::string version;  ///< of untax
  std::string driver;
  std::string library;  ///< "cuBLASLt 13.0.2, NCCL 2.28.9"
  int repeats = 0;      ///< timed runs of each figure, which is their median
  device_rates rates;
  std::vector<tuning_entry> entries;

  /// "the table of NVIDIA H200 (2026-11-21, commit 0123abc)".
  [[nodiscard]] std::string text() const;
};

/// Reads the text of `to_json`. Throws `invalid_argument` that names `origin`, the field or the
/// entry, its value and the right values.
[[nodiscard]] tuning_table parse_table(std::string_view text, const std::string& origin);
/// Reads a table from a file.
[[nodiscard]] tuning_table load_table(const std::string& path);
/// JSON with one line for each entry.
[[nodiscard]] std::string to_json(const tuning_table& table);

/// The tables that are compiled in, from ops/choice/tables/*.json.
[[nodiscard]] const std::vector<tuning_table>& built_in_tables();

struct named_text {
  std::string name;
  std::string text;
};

/// The files in ops/choice/tables; a source that is generated from them defines it.
[[nodiscard]] std::vector<named_text> built_in_texts();

/// Joins lines into one text: compilers limit the length of a single literal.
[[nodiscard]] std::string joined(std::initializer_list<const char*> lines);

}  // namespace untax
