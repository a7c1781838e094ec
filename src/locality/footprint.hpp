#pragma once

#include <vector>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// A lower bound on the bytes that any set of a given number of blocks needs. Some axes of the grid
/// determine where a block reads an operand, and the others do not. So a set of blocks reads at
/// least as many pieces of the operand as its projection on these axes has points. For each set
/// there is a box of the same size, none of whose projections is larger (Bollobas and Thomason's
/// box theorem). Sectors that memory may send unrequested, as partners of requested ones, are not
/// counted.
class footprint {
 public:
  footprint(const kernel& k, const device& d);

  /// Distinct bytes of `blocks` blocks from their first step to their last.
  [[nodiscard]] double whole(double blocks) const { return least(blocks, true); }
  /// Distinct bytes that `blocks` blocks read in the same step, of operands of which each step
  /// reads another part.
  [[nodiscard]] double of_step(double blocks) const { return least(blocks, false); }
  /// Distinct bytes of the operands that `of_step` leaves out, over the whole kernel.
  [[nodiscard]] double outside_steps() const { return outside_steps_; }
  /// Totals over all blocks: requested bytes, distinct bytes, and steps.
  [[nodiscard]] double requested() const { return requested_; }
  [[nodiscard]] double distinct() const { return distinct_; }
  [[nodiscard]] double steps() const { return steps_; }

 private:
  struct term {
    double bytes = 0;   ///< bytes of a piece, at one step
    double steps = 1;   ///< number of steps, each with another piece
    unsigned axes = 0;  ///< one bit for each axis that determines the piece
    bool is_of_steps = false;
  };

  void count(const kernel& k, const device& d);
  /// The bytes of a term without those that memory may send unrequested, as partners in pairs.
  [[nodiscard]] double without_given(const kernel& k, const device& d, std::size_t access,
                                     double bytes) const;
  [[nodiscard]] term term_of(const kernel& k, std::size_t access) const;
  [[nodiscard]] double least(double blocks, bool is_whole) const;
  [[nodiscard]] double search(const std::vector<term>& terms, std::vector<double>& sides,
                              const std::vector<unsigned>& groups,
                              const std::vector<double>& extents, std::size_t group,
                              double left) const;

  std::vector<term> terms_;
  std::vector<int> extents_;
  int least_steps_ = 1;
  double requested_ = 0;
  double distinct_ = 0;
  double outside_steps_ = 0;
  double steps_ = 0;
};

}  // namespace untax::locality
