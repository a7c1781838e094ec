#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <untax/core/matrix.hpp>
#include <untax/decoder/shares.hpp>

namespace untax {

/// Tensors by their names in Hugging Face's files, read in parts. A vector is a matrix of one row.
class weight_source {
 public:
  struct shape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
  };

  virtual ~weight_source() = default;
  /// The shape of a tensor; nothing if there is none of this name.
  [[nodiscard]] virtual std::optional<shape> find(const std::string& name) const = 0;
  /// Writes rows and columns of a tensor to `to`, which has their size, in the elements of `to`.
  /// The tensor exists and has them.
  virtual void read(const std::string& name, const index_range& rows, const index_range& cols,
                    const matrix& to) = 0;
};

}  // namespace untax
