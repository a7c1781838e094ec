// The memory orders that the compiler sees: an x86 executes most of them alike.
#include <untax/rma/order.hpp>

#include <atomic>

#include <gtest/gtest.h>

namespace {

using untax::memory_order;
namespace detail = untax::detail;

TEST(orders, of_read_write_operations_are_as_requested) {
  EXPECT_EQ(detail::exchange_order(memory_order::relaxed), std::memory_order_relaxed);
  EXPECT_EQ(detail::exchange_order(memory_order::acquire), std::memory_order_acquire);
  EXPECT_EQ(detail::exchange_order(memory_order::release), std::memory_order_release);
  EXPECT_EQ(detail::exchange_order(memory_order::acq_rel), std::memory_order_acq_rel);
}

TEST(orders, loads_acquire_and_stores_release_as_requested) {
  EXPECT_EQ(detail::load_order(memory_order::relaxed), std::memory_order_relaxed);
  EXPECT_EQ(detail::load_order(memory_order::acquire), std::memory_order_acquire);
  EXPECT_EQ(detail::load_order(memory_order::release), std::memory_order_relaxed);
  EXPECT_EQ(detail::load_order(memory_order::acq_rel), std::memory_order_acquire);
  EXPECT_EQ(detail::store_order(memory_order::relaxed), std::memory_order_relaxed);
  EXPECT_EQ(detail::store_order(memory_order::acquire), std::memory_order_relaxed);
  EXPECT_EQ(detail::store_order(memory_order::release), std::memory_order_release);
  EXPECT_EQ(detail::store_order(memory_order::acq_rel), std::memory_order_release);
}

}  // namespace
