#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <untax/core/error.hpp>
#include <untax/locality/block_order.hpp>
#include <untax/locality/certificate.hpp>
#include <untax/locality/device.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality::test {

/// The text of the `invalid_argument` that `action` throws; "" if it throws none.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const error& e) {
    return e.code() == errc::invalid_argument ? e.what() : "another code: " + std::string(e.what());
  }
  return {};
}

/// The refusal of the description of a device in which `replacement` stands for `what`.
inline std::string refusal_of_device(std::string text, const std::string& what,
                                     const std::string& replacement) {
  text.replace(text.find(what), what.size(), replacement);
  return refusal([&] { (void)read_device(text, "d"); });
}

/// Simulates a kernel in the order of this name.
inline outcome in_order(const kernel& k, const device& d, const std::string& name,
                        const assumptions& how = {}) {
  const block_order order = order_named(k, d.domains, name);
  return simulate(k, d, {order.table(k.blocks()), order.way}, {}, how);
}

inline std::vector<int> shuffled(int blocks, std::mt19937_64& random) {
  std::vector<int> made(static_cast<std::size_t>(blocks));
  for (int i = 0; i < blocks; ++i) made[static_cast<std::size_t>(i)] = i;
  std::shuffle(made.begin(), made.end(), random);
  return made;
}

}  // namespace untax::locality::test
