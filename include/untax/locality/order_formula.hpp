#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <untax/locality/block_order.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// The number of times that each block of a grid is run if each position of the dispatch runs one
/// block.
struct order_verdict {
  int blocks = 0;            ///< of the grid
  int distinct = 0;          ///< blocks that are run at all
  int repeated = 0;          ///< blocks that are run more than once
  int outside = 0;           ///< positions whose number is no block of the grid
  std::vector<int> missing;  ///< the first blocks that are never run, at most 4

  [[nodiscard]] bool is_bijection() const { return distinct == blocks; }
  /// A sentence for people.
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] order_verdict judge(const std::vector<std::int64_t>& numbers);

/// The code of a formula: statements in order, each with its operations in postfix order.
struct formula_program {
  enum class operation {
    number,
    name,
    negate,
    invert,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    left,
    right,
    both,
    differing,
    either,
    below,
    at_most,
    above,
    at_least,
    equal,
    unequal,
    least,
    greatest,
    choice,
  };
  struct instruction {
    operation what = operation::number;
    std::int64_t value = 0;  ///< of a number; of a name, its index
  };
  struct statement {
    int target = 0;  ///< an index of `names`
    std::vector<instruction> code;
  };

  std::vector<std::string> names;    ///< given names first, then names that statements declare
  std::vector<std::int64_t> values;  ///< of the given names
  std::vector<statement> statements;
  int given = 0;   ///< the number of given names
  int result = 0;  ///< the index of the name that holds the block at the end
  /// Whether the block is the one at the places on the axes, which the statements set.
  bool has_places = false;
  /// Whether C computes it as the formula does: no division has a negative operand, and all values
  /// fit in 32 bits.
  bool is_natural = true;
};

/// An order that a user writes: integer statements that give the block of each position, or the
/// list of the blocks. docs/locality.md has the grammar.
class order_formula {
 public:
  /// Reads a text; `origin` names it in errors. Throws `invalid_argument`.
  static order_formula read(std::string_view text, std::string_view origin, const kernel& k,
                            int domains);

  /// The number that each position gives. It need not be a block of the grid.
  [[nodiscard]] const std::vector<std::int64_t>& numbers() const noexcept { return numbers_; }
  /// The order. Throws `invalid_argument` with the verdict if it is no bijection.
  [[nodiscard]] block_order order() const;

 private:
  std::string origin_;
  std::vector<std::int64_t> numbers_;
  std::shared_ptr<const formula_program> program_;  // null for a list
};

}  // namespace untax::locality
