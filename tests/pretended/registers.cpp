// Registers that the roles of a GEMM ask for.
#include <gtest/gtest.h>

#include "engines/gpu/gemm/config.hpp"

namespace untax::gpu {
namespace {

/// A block has those that its threads begin with, and a role that asks for more waits for ever.
TEST(registers_of_roles, fit_into_the_registers_of_a_block) {
  constexpr int of_multiprocessor = 65536;
  constexpr int at_start = of_multiprocessor / block_threads / 8 * 8;  // of a thread
  for (const register_shares& r : {registers_alone, registers_with_peers, registers_with_sums}) {
    EXPECT_LE(warpgroup_threads * (r.producer + mma_warpgroups * r.consumer),
              block_threads * at_start);
    EXPECT_EQ(r.producer % 8 + r.consumer % 8, 0) << "setmaxnreg takes multiples of 8";
  }
}

}  // namespace
}  // namespace untax::gpu
