#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace untax::order::test {

/// Every position has a block of its own, and the inverse leads back.
template <class Order>
void expect_bijection(const Order& order, int size) {
  ASSERT_EQ(order.size(), size);
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (int position = 0; position < size; ++position) {
    const int block = order.block(position);
    ASSERT_GE(block, 0) << "position " << position;
    ASSERT_LT(block, size) << "position " << position;
    ASSERT_FALSE(seen[static_cast<std::size_t>(block)]) << "block " << block << " comes twice";
    seen[static_cast<std::size_t>(block)] = true;
    ASSERT_EQ(order.position(block), position) << "block " << block;
  }
}

/// Of a size that is too large for that: from random places there and back, both ways.
template <class Order, class Random>
void expect_inverse(const Order& order, Random& random, int trials) {
  for (int i = 0; i < trials; ++i) {
    const int place = static_cast<int>(random() % static_cast<std::uint64_t>(order.size()));
    ASSERT_EQ(order.position(order.block(place)), place);
    ASSERT_EQ(order.block(order.position(place)), place);
  }
}

}  // namespace untax::order::test
