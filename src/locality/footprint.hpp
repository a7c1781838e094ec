#pragma once

#include <vector>

#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>

namespace untax::locality {

/// Bytes that no set of so many blocks can do with less of. Each operand is read at a place that
/// some axes of the grid decide, and the others do not; so a set of blocks reads at least as many
/// pieces of it as its projection on these axes has points. Of all sets with as many blocks, boxes
/// have the least projections, all at once (Bollobas and Thomason's box theorem). Bytes that memory
/// may give unasked, beside others of a pair of sectors, are left out where one could be asked for
/// without the other.
class footprint {
 public:
  footprint(const kernel& k, const device& d);

  /// Distinct bytes of `blocks` blocks from their first step to their last.
  [[nodiscard]] double whole(double blocks) const { return least(blocks, true); }
  /// Distinct bytes of what `blocks` blocks read at one and the same step, of operands that every
  /// step reads elsewhere.
  [[nodiscard]] double of_step(double blocks) const { return least(blocks, false); }
  /// Distinct bytes of the operands that `of_step` leaves out, over the whole kernel.
  [[nodiscard]] double outside_steps() const { return outside_steps_; }
  /// Bytes that all blocks ask for; bytes that are asked for once at least; steps of all blocks.
  [[nodiscard]] double requested() const { return requested_; }
  [[nodiscard]] double distinct() const { return distinct_; }
  [[nodiscard]] double steps() const { return steps_; }

 private:
  struct term {
    double bytes = 0;   ///< of a piece, at one step
    double steps = 1;   ///< at which pieces are different ones
    unsigned axes = 0;  ///< a bit for each that decides where the piece lies
    bool is_of_steps = false;
  };

  void count(const kernel& k, const device& d);
  /// What remains of the bytes of a term if memory gives pairs.
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
