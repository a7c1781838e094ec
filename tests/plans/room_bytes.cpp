// How much symmetric memory operators for any number of rows take on GPUs.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engines/gpu/packets/layout.hpp"
#include "engines/gpu/rooms/room_pool.hpp"
#include "ops/all_gather_gemm/maps.hpp"
#include "ops/all_reduce/protocol.hpp"
#include "ops/all_reduce_norm/device_schedule.hpp"
#include "ops/all_reduce_norm/planning.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/row_table.hpp"
#include "ops/gemm_reduce_common/device_plan.hpp"
namespace {

using namespace untax;

constexpr int num_sms = 132;
constexpr double mega = 0x1p20;

/// The bytes of the inboxes of the plans of all ends, where each has `bytes_of(rows)`: as
/// `room_pool` has them.
double taken(std::vector<std::int64_t> ends,
             const std::function<std::size_t(std::int64_t)>& bytes_of) {
  std::ranges::reverse(ends);
  std::size_t own = 0;
  std::vector<std::size_t> shared;
  for (const std::int64_t end : ends) {
    const std::size_t bytes = bytes_of(end);
    if (bytes <= gpu::most_own_room) {
      own += bytes;
    } else if (std::ranges::none_of(shared, [&](std::size_t room) { return room >= bytes; })) {
      shared.push_back(gpu::shared_room_bytes(bytes));
    }
  }
  for (const std::size_t room : shared) own += room;
  return static_cast<double>(own);
}

/// The bound: twice what peers write, and 64 MiB.
double bound(std::int64_t rows, std::int64_t cols, int bytes) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(cols) * bytes + 64 * mega;
}

struct projection {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// Of models of 8, 70 and 405 thousand million parameters, between two ranks.
std::vector<projection> gathered() {
  return {{8192, 3072, 4096}, {8192, 28672, 8192}, {32768, 9216, 16384}};
}
std::vector<projection> summed() {
  return {{8192, 4096, 4096}, {8192, 8192, 28672}, {32768, 16384, 16384}};
}

TEST(room_bytes, of_a_gather_are_at_most_twice_those_of_operand_a) {
  for (const auto& [m, n, k] : gathered()) {
    for (const gather_axis axis : {gather_axis::rows, gather_axis::k}) {
      const auto bytes = [&, &n = n, &k = k](std::int64_t rows) {
        const all_gather_gemm_problem p{
            .m = rows, .n = n, .k = k, .type = dtype::bf16, .gather = axis};
        const operator_options options{.how = pattern::fused_warp_specialized,
                                       .varying_rows = true};
        const gather_plan plan = gather_plans(p, 2, 0, options, num_sms).front();
        const gather_bytes total = bytes_of(plan, all_gather_gemm_protocol(p, plan.protocol));
        return total.inbox + total.outbox;
      };
      EXPECT_LE(taken(row_ends(m), bytes), bound(m, k, 2))
          << fmt::format("{} x {} x {} by {}", m, n, k, name_of(axis));
    }
  }
}

/// With the result that peers write, if all ranks have it.
TEST(room_bytes, of_sums_are_at_most_twice_those_of_the_result) {
  for (const auto& [m, n, k] : summed()) {
    for (const reduce_target target : {reduce_target::owner, reduce_target::everywhere}) {
      const bool everywhere = target == reduce_target::everywhere;
      const auto bytes = [&, &n = n, &k = k](std::int64_t rows) {
        device_sum sum{"sums", rows, n, k, dtype::bf16, dtype::bf16, target};
        sum.phases = everywhere && rows * n * 2 >= std::int64_t{4} << 20 ? 2 : 1;
        operator_options options{.how = usual_patterns_of(sum, 2).front(), .varying_rows = true};
        if (options.how != pattern::fused_warp_specialized)
          return static_cast<std::size_t>(
              sums_plans(sum, 2, 0, options, {num_sms}).front().how.inbox_bytes());
        const row_sums_plan plan = row_sums_plans(sum, 2, 0, options, {num_sms}).front();
        return static_cast<std::size_t>(plan.slab_bytes(n) * plan.world);
      };
      const double result = everywhere ? 2.0 * static_cast<double>(m * n) : 0;
      EXPECT_LE(taken(row_ends(m), bytes) + result, bound(m, n, 2))
          << fmt::format("{} x {} x {}, everywhere {}", m, n, k, everywhere);
    }
  }
}

TEST(room_bytes, of_a_norm_are_at_most_twice_those_of_its_results) {
  for (const std::int64_t hidden : {4096, 8192, 16384}) {
    for (const std::int64_t tokens : {8192, 32768}) {
      const auto problem = [&](std::int64_t rows) {
        all_reduce_norm_problem p;
        p.tokens = rows;
        p.hidden = hidden;
        p.type = dtype::bf16;
        return p;
      };
      const auto bytes = [&](std::int64_t rows) {
        const int phases = plan_norm_on_gpus(2, 0, problem(rows), {}).plan.phases;
        return static_cast<std::size_t>(
            norm_plan_of(problem(rows), 2, 0, phases, num_sms).how.inbox_bytes());
      };
      const auto results = static_cast<double>(room_of(problem(tokens)).bytes);
      // Peers write two results.
      EXPECT_LE(taken(number_ends(tokens), bytes) + results, bound(tokens, 2 * hidden, 2))
          << tokens << " x " << hidden;
    }
  }
}

TEST(room_bytes, of_an_all_reduce_are_at_most_twice_those_of_the_result) {
  for (const int ranks : {2, 4, 8}) {
    for (std::int64_t count = std::int64_t{1} << 14; count <= std::int64_t{1} << 30; count *= 2) {
      const auto bytes = [&](std::int64_t part) {
        const all_reduce_problem p{.count = part, .type = dtype::bf16};
        const collective_plan plan =
            plan_collective(ranks, 0, need_of(p, ranks), {.varying_count = true}, memory_kind::cuda)
                .plan;
        const bool two = plan.phases == 2;
        if (plan.wire == wire_kind::packets) {
          const std::int64_t largest = two ? ceil_div<std::int64_t>(part, ranks) : part;
          return static_cast<std::size_t>((two ? 4 : 2) * (ranks > 2 ? ranks : 1) *
                                          ceil_div<std::int64_t>(largest, 8) * 16);
        }
        return static_cast<std::size_t>(plan.phases * 2 * plan.workers * plan.depth * ranks *
                                        plan.chunk * 2);
      };
      // Each of eight ranks has two rooms for a chunk at least, so that none waits for each chunk.
      const double more = ranks > 4 ? 48 * mega : 0;
      EXPECT_LE(taken(number_ends(count), bytes), bound(1, count, 2) + more)
          << count << " elements, " << ranks << " ranks";
    }
  }
}

}  // namespace
