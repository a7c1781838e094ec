// Two plans for GPUs that use one inbox in turn, each with counters and epochs of its own: what a
// hand-over between them is needed for, proved lane by lane.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/tile/order.hpp>

#include "ops/all_gather_gemm/device_schedule.hpp"
#include "ops/all_reduce_norm/device_schedule.hpp"
#include "ops/common/device_schedule.hpp"
#include "ops/gemm_reduce_common/device_schedule.hpp"

namespace {

using namespace untax;
using schedule::lane_program;

constexpr int num_sms = 8;

/// The plan of each run, of two.
using turns = std::vector<std::size_t>;

/// A step of a plan whose counters begin at `base`.
step shifted(step s, int base) {
  for (room step::*of : {&step::reserve, &step::acquire, &step::publish, &step::retire}) {
    room& r = s.*of;
    if (!r.named()) continue;
    r.number += base;
    r.ready += base;
    if (r.free >= 0) r.free += base;
  }
  return s;
}

/// The lanes of a rank: of the hand-over, then of both plans, of which one runs in each epoch.
class shared_lanes {
 public:
  shared_lanes(int rank, std::array<lane_program, 2> plans, turns order, bool hands_over)
      : plans_(std::make_shared<const std::array<lane_program, 2>>(std::move(plans))),
        order_(std::move(order)),
        all_(memory(rank)) {
    all_.begin_kernel("hand over", 0, schedule::lane_work::meets);
    all_.add([this, rank, hands_over](std::uint64_t epoch, const program::sink& emit) {
      if (hands_over && changes(epoch)) hand_over(rank, epoch, emit);
    });
    int stage = 1;
    for (const std::size_t plan : {0, 1}) {
      const lane_program& lanes = (*plans_)[plan];
      for (int i = 0; i < lanes.kernels(); ++i) {
        const kernel about = lanes.kernel_at(i);
        all_.begin_kernel(about.name, stage + about.stage, lanes.work_of(i));
        for (int worker = 0; worker < about.workers; ++worker) {
          all_.add([this, plan, i, worker](std::uint64_t epoch, const program::sink& emit) {
            if (order_[epoch - 1] != plan) return;
            (*plans_)[plan].program(i, worker, run_of(epoch),
                                    [&](const step& s) { emit(shifted(s, base_of(plan))); });
          });
        }
      }
      stage += lanes.kernels();
    }
  }
  shared_lanes(const shared_lanes&) = delete;
  shared_lanes& operator=(const shared_lanes&) = delete;
  ~shared_lanes() = default;

  [[nodiscard]] const lane_program& lanes() const { return all_; }
  [[nodiscard]] bool orders(int flag) const {
    const std::size_t plan = flag >= base_of(1) ? 1 : 0;
    return flag < base_of(0) || (*plans_)[plan].orders(flag - base_of(plan));
  }

 private:
  [[nodiscard]] lane_program::rank_memory memory(int rank) const {
    const lane_program& a = plans_->front();
    const lane_program& b = plans_->back();
    const auto both = [](const extent& x, const extent& y) {
      return extent{std::max(x.rows, y.rows), std::max(x.cols, y.cols)};
    };
    return {rank,
            a.world(),
            a.world() + a.counters() + b.counters(),
            both(a.inbox(), b.inbox()),
            both(a.outbox(), b.outbox()),
            both(a.tile_extent(), b.tile_extent())};
  }
  [[nodiscard]] int base_of(std::size_t plan) const {
    return plans_->front().world() + (plan == 0 ? 0 : plans_->front().counters());
  }
  [[nodiscard]] bool changes(std::uint64_t epoch) const {
    return epoch > 1 && order_[epoch - 1] != order_[epoch - 2];
  }
  /// The number of this run among those of its plan.
  [[nodiscard]] std::uint64_t run_of(std::uint64_t epoch) const {
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(epoch);
    return static_cast<std::uint64_t>(std::count(order_.begin(), end, order_[epoch - 1]));
  }
  void hand_over(int rank, std::uint64_t epoch, const program::sink& emit) const {
    const int world = all_.world();
    const auto flag = [&](int from, int to) {
      return room{.producer = from, .consumer = to, .number = from, .ready = from, .use = epoch};
    };
    for (int hop = 1; hop < world; ++hop)
      emit(step{.publish = flag(rank, receiver_at_hop(rank, hop, world))});
    for (int hop = 1; hop < world; ++hop)
      emit(step{.acquire = flag(source_at_hop(rank, hop, world), rank)});
  }

  std::shared_ptr<const std::array<lane_program, 2>> plans_;
  turns order_;
  lane_program all_;
};

/// The problems that the checker finds in the plans `models[plan][rank]`.
template <class Model>
std::vector<std::string> problems(const std::array<std::deque<Model>, 2>& models,
                                  const turns& order, bool hands_over) {
  std::deque<shared_lanes> ranks;
  std::vector<schedule::rank_plan> plans;
  for (std::size_t rank = 0; rank < models[0].size(); ++rank) {
    const Model& a = models[0][rank];
    const Model& b = models[1][rank];
    shared_lanes& lanes =
        ranks.emplace_back(static_cast<int>(rank),
                           std::array<lane_program, 2>{a.lanes(), b.lanes()}, order, hands_over);
    const auto of_a = a.operands();
    const auto of_b = b.operands();
    std::vector<extent> results;
    for (const std::size_t plan : order) results.push_back(plan == 0 ? of_a.c : of_b.c);
    const auto larger = [](const extent& x, const extent& y) { return x.rows > y.rows ? x : y; };
    plans.emplace_back(
        program(lanes.lanes()),
        schedule::operand_extents{larger(of_a.a, of_b.a), of_a.b, larger(of_a.c, of_b.c)},
        order.size(), results);
  }
  return check_lanes(
             plans,
             [&](int rank, int flag) { return ranks[static_cast<std::size_t>(rank)].orders(flag); })
      .problems;
}

const std::vector<turns> orders = {{0, 1, 0, 1}, {0, 0, 1, 1, 0, 1, 1, 1, 0}, {1, 0, 0, 0, 1}};

/// With hand-overs nothing is found; without, something is, unless plans need none.
template <class Model>
void expect_hand_overs(const std::array<std::deque<Model>, 2>& models, bool needed) {
  std::size_t races = 0;
  for (const turns& order : orders) {
    const auto result = problems(models, order, true);
    EXPECT_TRUE(result.empty()) << result.front();
    races += problems(models, order, false).size();
  }
  EXPECT_EQ(races > 0, needed);
}

TEST(shared_rooms, of_a_norm_are_handed_over_between_operators) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    for (const int phases : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} ranks, {} phases", ranks, phases));
      std::array<std::deque<norm_model>, 2> models;
      for (const std::size_t plan : {0, 1}) {
        all_reduce_norm_problem p;
        p.tokens = plan == 0 ? 11 : 6;
        p.hidden = 16;
        p.type = dtype::bf16;
        for (int rank = 0; rank < ranks; ++rank)
          models[plan].emplace_back(norm_plan_of(p, ranks, rank, phases, num_sms));
      }
      // Where owners pass rows on, a run ends with a meeting of all ranks.
      expect_hand_overs(models, phases == 1);
    }
  }
}

TEST(shared_rooms, of_a_gather_are_handed_over_between_operators) {
  for (const int ranks : {2, 3}) {
    for (const pattern how : {pattern::fused_warp_specialized, pattern::fused_specialized}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", ranks, name_of(how)));
      std::array<std::deque<plan_check::gather_model>, 2> models;
      for (const std::size_t plan : {0, 1}) {
        const all_gather_gemm_problem p{.m = plan == 0 ? 700 : 300,
                                        .n = 256,
                                        .k = 192,
                                        .type = dtype::bf16,
                                        .gather = gather_axis::rows};
        const operator_options options{.how = how, .varying_rows = true};
        for (int rank = 0; rank < ranks; ++rank)
          models[plan].emplace_back(p, gather_plans(p, ranks, rank, options, num_sms).front());
      }
      expect_hand_overs(models, true);
    }
  }
}

TEST(shared_rooms, of_sums_as_rows_are_opened_without_a_hand_over) {
  for (const int ranks : {2, 3}) {
    for (const reduce_target target : {reduce_target::owner, reduce_target::everywhere}) {
      SCOPED_TRACE(fmt::format("{} ranks, everywhere {}", ranks, target != reduce_target::owner));
      std::array<std::deque<row_sums_model>, 2> models;
      for (const std::size_t plan : {0, 1}) {
        device_sum sum{"sums", plan == 0 ? 768 : 300, 256, 512, dtype::bf16, dtype::bf16, target};
        sum.phases = target == reduce_target::owner ? 1 : 2;
        const operator_options options{.how = pattern::fused_warp_specialized,
                                       .varying_rows = true};
        for (int rank = 0; rank < ranks; ++rank)
          models[plan].emplace_back(sum,
                                    row_sums_plans(sum, ranks, rank, options, {num_sms}).front());
      }
      expect_hand_overs(models, false);
    }
  }
}

}  // namespace
