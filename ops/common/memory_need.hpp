#pragma once

#include <cstddef>
#include <string>

namespace untax {

/// An estimate of the memory that work takes, made before it is allocated. Bytes are doubles: no
/// size is too large for their sum.
struct memory_need {
  double weights = 0;       ///< of a model: weights, keys and values
  double activations = 0;   ///< the other inputs, and results
  double heaps = 0;         ///< symmetric heaps, less results that lie there
  double work_space = 0;    ///< of workers and of checks
  double heap_of_rank = 0;  ///< the symmetric heap of the rank that needs the largest one, results
                            ///< included

  [[nodiscard]] double total() const noexcept { return weights + activations + heaps + work_space; }
  /// Adds a need that exists at the same time; `heap_of_rank` is added, too.
  memory_need& operator+=(const memory_need& other) noexcept;
  /// "weights 1.5 GiB, activations 12 MiB": the parts that are not 0, the largest first.
  [[nodiscard]] std::string text() const;
};

/// More bytes than any machine has. The need of larger operands is not estimated, since numbers
/// of tiles would be too large for their types.
inline constexpr double beyond_any_machine = 0x1p48;

/// A need as a size of allocations. A need beyond the range of the type stays larger than any
/// machine's memory.
[[nodiscard]] std::size_t whole_bytes(double bytes) noexcept;

/// "1.5 GiB", with binary units up to EiB.
[[nodiscard]] std::string memory_text(double bytes);

}  // namespace untax
