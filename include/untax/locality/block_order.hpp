#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <untax/locality/kernel.hpp>
#include <untax/order/axes.hpp>
#include <untax/order/curves.hpp>
#include <untax/order/raster.hpp>
#include <untax/order/rectangles.hpp>
#include <untax/order/remap.hpp>
#include <untax/order/steps.hpp>

namespace untax::locality {

/// A way through the two axes that change first, repeated for each place on the other axes.
template <class Way>
using plane = order::repeated<order::through<Way>>;
using axes_in_order = order::axis_order<6>;
using remap_of_rows = order::repeated<order::chunked_remap>;
using last_first_along = order::along_axis<order::last_first>;

struct formula_program;
/// An order that is given by its blocks, and by the formula that yields them, if there is one.
struct listed_order {
  std::shared_ptr<const std::vector<int>> blocks;     ///< of each position
  std::shared_ptr<const std::vector<int>> positions;  ///< of each block
  std::shared_ptr<const formula_program> formula;

  [[nodiscard]] int block(int position) const {
    return (*blocks)[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] int position(int block) const {
    return (*positions)[static_cast<std::size_t>(block)];
  }
};

/// An order of the blocks of a kernel: one of those in untax/order, or a list.
using order_part =
    std::variant<listed_order, order::chunked_remap, remap_of_rows, axes_in_order, last_first_along,
                 plane<order::banded>, plane<order::transposed<order::banded>>, plane<order::snake>,
                 plane<order::transposed<order::snake>>, plane<order::morton>,
                 plane<order::hilbert>, plane<order::diagonals>, plane<order::rectangles>>;

/// An order that is composed at run time: the first part is applied to the position, each other
/// part to the result of the one before.
struct block_order {
  std::string name;
  std::vector<order_part> parts;
  order::direction way = order::direction::forward;

  [[nodiscard]] int block(int position) const;
  [[nodiscard]] int position(int block) const;
  /// The block of each position, for a kernel with `blocks` blocks.
  [[nodiscard]] std::vector<int> table(int blocks) const;
};

/// The name of a direction.
[[nodiscard]] const char* name_of(order::direction way);

/// All orders that are tried for a kernel on a device with `domains` domains: remaps, ways through
/// the plane of the two axes that change first, orders of axes, rectangles, last first, and
/// directions of steps. The first one is the order of the numbers. Orders that would start a block
/// before another one that it needs are left out.
[[nodiscard]] std::vector<block_order> order_space(const kernel& k, int domains);

/// The names of all orders that `order_named` accepts.
[[nodiscard]] std::vector<std::string> order_names(const kernel& k, int domains);

/// The order `name` of `order_space`, or an order for attention that arXiv 2511.02132 names: "naive
/// block-first", "swizzled block-first", "naive head-first" and "swizzled head-first". Throws
/// `invalid_argument`.
[[nodiscard]] block_order order_named(const kernel& k, int domains, const std::string& name);

}  // namespace untax::locality
