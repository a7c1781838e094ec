#pragma once

#include <cstdint>
#include <vector>

#include <untax/tile/protocol.hpp>
#include <untax/tile/step.hpp>

#include "engines/host/attention.hpp"
#include "engines/host/convert.hpp"
#include "engines/host/normalise.hpp"
#include "engines/host/operand_memory.hpp"

namespace untax::host {

/// The memory that steps need at a worker, beside the size of a tile.
struct math_need {
  bool product = false;
  bool sum = false;
  std::int64_t panel = 0;  ///< columns
  std::int64_t left = 0;   ///< columns of left operands that are widened
  std::int64_t right = 0;  ///< columns of weights that are widened
  std::int64_t addends = 0;
  std::int64_t hidden = 0;  ///< elements of rows that are normalised

  /// Adds the need of a step. Reads only the types of operands.
  void add(const step& s, const operand_table& types);
  [[nodiscard]] bool operator==(const math_need&) const = default;
};

/// The memory and arithmetic of one worker: the private tiles that a protocol can name, and room
/// for widened operands. Tiles are multiplied with OpenBLAS, one thread a call, or in order. 16-bit
/// operands are widened first and kept as long as the next steps use the same ones.
class tile_math {
 public:
  /// `in_order`: `multiply_in_order` makes products, so that their bits do not depend on the shape.
  explicit tile_math(extent tile, bool in_order = false) : tile_(tile), in_order_(in_order) {}

  /// Forgets widened operands; their memory may hold something else in the next run.
  void start_run() noexcept { left_.key = right_.key = {}; }

  /// Reserves the memory that `perform` needs for such steps, on tiles of any size.
  void reserve(const math_need& need);

  /// Carries out the action of a step. The caller carries out the verbs around it.
  void perform(const step& s, const operand_table& operands);

 private:
  struct widened {
    tile_memory key;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<float> values;
  };
  struct float_tile {
    const float* data;
    std::int64_t stride;
  };

  void add(const step& s, const operand_table& operands);
  void reduce(const step& s, const operand_table& operands);
  void multiply(const step& s, const operand_table& operands);
  /// Multiplies a block of columns of a step. It begins at column `begin` of the private tile.
  void multiply_columns(const step& s, const float_tile& a, std::int64_t begin,
                        const operand_table& operands);
  /// Panels are kept as fp32; all pieces of one have the same number of columns.
  void load_panel(const step& s, const operand_table& operands);
  void multiply_floats(const step& s, const float_tile& a, const float_tile& b, float* c,
                       std::int64_t ldc) const;
  static float_tile as_floats(const tile_memory& tile, std::int64_t rows, std::int64_t cols,
                              widened& keep);
  /// The memory of a private tile or of an operand, from `p` on.
  tile_memory resolve(const place& p, const operand_table& operands);
  std::vector<float>& scratch(operand role);

  extent tile_;
  bool in_order_;
  std::vector<float> product_;
  std::vector<float> sum_;
  std::vector<float> panel_;
  std::int64_t panel_stride_ = 1;
  std::vector<tile_memory> addends_;
  widened left_;
  widened right_;
  attention_math attention_;
  norm_math norm_;
};

/// C[m x n] = A[m x k] x B[n x k]^T (+ C), fp32, one thread of OpenBLAS.
void multiply_fp32(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                   const float* b, std::int64_t ldb, bool accumulate, float* c, std::int64_t ldc);

}  // namespace untax::host
