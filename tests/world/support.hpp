#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <untax/flow/control.hpp>
#include <untax/flow/control_block.hpp>
#include <untax/world/options.hpp>

#include "tests/errors.hpp"

namespace world_test {

using namespace std::chrono_literals;
using untax_test::error_of;
using untax_test::expect_error;

/// Small heaps with guards; a wait that ends soon when a test goes wrong.
inline untax::world_options small_world(std::chrono::milliseconds limit = 60s) {
  untax::world_options options;
  options.heap_bytes = std::size_t{1} << 20;
  options.heap_guards = true;
  options.wait_limit = limit;
  return options;
}

/// Whether `new` fails in all threads of the program, from now on.
void refuse_memory(bool refuse) noexcept;

/// Random numbers from a fresh seed, which is printed so that a failure can be repeated.
inline std::mt19937_64 random_numbers() {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  return std::mt19937_64(seed);
}

/// A control block of its own, for tests of what works on it.
class lone_control {
 public:
  explicit lone_control(int ranks)
      : words_((untax::control::bytes(ranks) + 7) / 8),
        view(reinterpret_cast<std::byte*>(words_.data()), ranks) {
    for (int rank = 0; rank < ranks; ++rank) view.set_status(rank, untax::rank_status::running);
  }
  /// Its words, as another rank may have left them.
  [[nodiscard]] untax::control_block& block() const {
    return *reinterpret_cast<untax::control_block*>(const_cast<std::uint64_t*>(words_.data()));
  }

 private:
  std::vector<std::uint64_t> words_;

 public:
  untax::control view;
};

}  // namespace world_test
