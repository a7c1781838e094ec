#pragma once

#include <string>

#include <untax/locality/block_order.hpp>
#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>
#include <untax/locality/order_formula.hpp>
#include <untax/locality/search.hpp>

namespace untax::locality {

/// The order as C++: a value of untax/order, for kernels and hosts that include it; as `to_hip` for
/// a formula or a list.
[[nodiscard]] std::string to_cpp(const block_order& order, const kernel& k);
/// The order as a function for HIP, CUDA and C++ that includes no header. Lengths of axes are
/// arguments, whose defaults are those of `k`. Orders along curves and diagonals, and lists, have a
/// table. Throws `invalid_argument` if it would have more than a million blocks.
[[nodiscard]] std::string to_hip(const block_order& order, const kernel& k);
/// As `to_hip`, as a `triton.jit` function.
[[nodiscard]] std::string to_triton(const block_order& order, const kernel& k);

/// A picture of the grid: the colour of a place is the domain that runs its block, and it is
/// lighter the later its wave. It shows only the first part of large grids.
[[nodiscard]] std::string to_svg(const block_order& order, const kernel& k, const device& d);

/// Hit rates by operand and domain, bytes and time, as text of at most 100 columns and as JSON.
[[nodiscard]] std::string text_of(const outcome& o, const kernel& k, const device& d);
[[nodiscard]] std::string json_of(const outcome& o, const kernel& k, const device& d,
                                  const std::string& order, const order_verdict* verdict = nullptr);
/// The result of a search, as text of at most 100 columns and as JSON.
[[nodiscard]] std::string text_of(const search_result& r, const kernel& k, const device& d);
[[nodiscard]] std::string json_of(const search_result& r, const kernel& k, const device& d);

}  // namespace untax::locality
