#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <untax/core/memory_kind.hpp>
#include <untax/core/pattern.hpp>
#include <untax/world/world.hpp>

#include "ops/common/memory_need.hpp"

namespace untax {

/// One rank's operator with inputs, and a result that can be checked.
class trial {
 public:
  trial() = default;
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;
  virtual ~trial() = default;

  /// Makes new inputs; the same seed makes the same ones. Not collective.
  virtual void refresh(std::uint64_t seed) = 0;
  /// Sets the result to NaN.
  virtual void poison_result() = 0;
  /// Runs one epoch. Collective.
  virtual void run() = 0;
  ///
  /// result - reference
  ///
  /// /
  ///
  /// reference
  ///
  /// in the Frobenius norm, reference in fp64, or in fp32 on GPUs, if each element is within its
  /// bound, else more than the tolerance; infinity if an element is NaN (`deviation`).
  [[nodiscard]] virtual double relative_error() const = 0;

  [[nodiscard]] virtual pattern chosen() const = 0;
  [[nodiscard]] virtual const std::string& explain() const = 0;
};

/// An operator on a problem, which can be run, checked and timed by code that does not know the
/// operator.
struct trial_subject {
  std::string name;         ///< of the operator
  std::string description;  ///< "all_gather_gemm, m 512, n 1024, k 768, fp32, gather rows"
  /// The problem, for reports: names and values.
  std::vector<std::pair<std::string, std::variant<std::int64_t, std::string>>> facts;
  std::vector<pattern> patterns;           ///< the patterns of the operator, beside `automatic`
  memory_kind memory = memory_kind::host;  ///< the memory of the worlds that the subject is for
  double tolerance = 0;                    ///< the largest relative error of a correct result

  std::string rate_unit = "GB/s";              ///< the unit of 1e9 units of work a second
  std::string rate_name = "bytes_per_second";  ///< in JSON
  /// Units of work in one run.
  std::function<double(int ranks)> work;
  /// An upper bound on the bytes of symmetric heap for each rank and pattern.
  std::function<std::size_t(int ranks)> heap_bytes;
  /// Memory that these patterns take together: of all ranks on the host, of one rank on a GPU.
  std::function<memory_need(int ranks, const std::vector<pattern>&, bool verify)> need;
  /// Makes a trial. Collective.
  std::function<std::unique_ptr<trial>(world&, pattern, std::uint64_t seed)> make;
};

}  // namespace untax
