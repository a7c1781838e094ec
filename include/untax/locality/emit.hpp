#pragma once

#include <string>

#include <untax/locality/block_order.hpp>
#include <untax/locality/device.hpp>
#include <untax/locality/kernel.hpp>
#include <untax/locality/search.hpp>

namespace untax::locality {

/// The order as a value of untax/order, for kernels and hosts that include it.
[[nodiscard]] std::string to_cpp(const block_order& order, const kernel& k);
/// A `__device__` function of plain C that needs nothing else. Orders along curves and diagonals
/// become one that looks the block up in a table, which `table` of the order has.
[[nodiscard]] std::string to_hip(const block_order& order, const kernel& k);
/// The same as a `triton.jit` function.
[[nodiscard]] std::string to_triton(const block_order& order, const kernel& k);

/// A picture: for each place of the grid the domain that does the block there, by colour, and its
/// wave, the later the lighter. Of large grids the first part.
[[nodiscard]] std::string to_svg(const block_order& order, const kernel& k, const device& d);

/// Hit rates by operand and domain, bytes and time, in text of at most 100 columns and as JSON.
[[nodiscard]] std::string text_of(const outcome& o, const kernel& k, const device& d);
[[nodiscard]] std::string json_of(const outcome& o, const kernel& k, const device& d,
                                  const std::string& order);
[[nodiscard]] std::string text_of(const search_result& r, const kernel& k, const device& d);
[[nodiscard]] std::string json_of(const search_result& r, const kernel& k, const device& d);

}  // namespace untax::locality
