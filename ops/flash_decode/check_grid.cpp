#include <fmt/format.h>

#include "ops/flash_decode/planning.hpp"
#include "ops/flash_decode/protocol.hpp"
#include "ops/flash_decode/spec.hpp"
#include "ops/flash_decode/workload.hpp"

namespace untax {
namespace {

struct cut {
  int workers;
  int senders;
  int splits;
};

struct shape {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};

struct attention_grid {
  using attention_case = grid_case<flash_decode_problem, flash_decode_plan>;

  pattern how;

  [[nodiscard]] std::string name() const {
    return fmt::format("{} {}", flash_decode_name, untax::name_of(how));
  }
  [[nodiscard]] static std::string name_of(const attention_case& c) {
    return fmt::format(
        "flash_decode {}: {} ranks, batch {}, heads {} / {} of {}, {} workers, {} senders, {} "
        "splits, {} epochs",
        untax::name_of(c.plan.how), c.plan.world, c.problem.batch, c.problem.heads,
        c.problem.kv_heads, c.problem.head_dim, c.plan.workers, c.plan.senders, c.plan.splits,
        c.epochs);
  }

  [[nodiscard]] attention_case make(int ranks, const shape& size, const cut& by) const {
    attention_case c;
    c.problem.batch = size.batch;
    c.problem.heads = size.heads;
    c.problem.kv_heads = size.kv_heads;
    c.problem.head_dim = size.head_dim;
    c.plan = {ranks, 0, how, by.workers, by.senders, by.splits};
    return c;
  }
  [[nodiscard]] std::vector<attention_case> schedules(int ranks, bool quick) const {
    std::vector<shape> shapes = {{1, 1, 1, 1}, {3, 4, 2, 2}};
    std::vector<cut> cuts = {{1, 1, 1}, {2, 1, 3}};
    if (!quick) {
      shapes.insert(shapes.end(), {{1, 8, 1, 3}, {2, 2, 2, 4}, {5, 6, 3, 1}});
      cuts.insert(cuts.end(), {{3, 2, 1}, {3, 2, 2}, {2, 3, 5}});
    }
    return crossed(shapes, cuts,
                   [&](const shape& size, const cut& by) { return make(ranks, size, by); });
  }
  [[nodiscard]] std::vector<attention_case> explored(int ranks) const {
    return {// One query and one element, so that a partial result is its statistics.
            make(ranks, {1, 1, 1, 1}, {1, 1, 1}),
            // Splits of several workers, and more items than workers.
            make(ranks, {3, 1, 1, 1}, {ranks == 2 ? 2 : 1, 1, 2})};
  }

  [[nodiscard]] static schedule::rank_plan steps(const attention_case& c,
                                                 const flash_decode_plan& plan) {
    const extent rows{c.problem.batch * c.problem.heads, c.problem.head_dim};
    const extent splits{c.problem.batch * c.problem.kv_heads, plan.splits};
    return {program(flash_decode_protocol(c.problem, plan)), {rows, splits, rows}, c.epochs};
  }
  [[nodiscard]] static model::scenario values(const attention_case& c) {
    const auto query = [](std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      return model::sample(epoch, row, col);
    };
    const auto split_of = [](int rank, std::int64_t item, std::int64_t split) {
      return model::sample(1000 + static_cast<std::uint64_t>(rank), item, split);
    };
    model::scenario s;
    s.a = [=](int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      return query(epoch, row, col);
    };
    s.b = split_of;
    s.expected = [=, group = c.problem.heads / c.problem.kv_heads, plan = c.plan](
                     int /*rank*/, std::uint64_t epoch, std::int64_t row, std::int64_t col) {
      std::uint64_t sum = 0;
      for (int rank = 0; rank < plan.world; ++rank) {
        for (int split = 0; split < plan.splits; ++split) sum += split_of(rank, row / group, split);
      }
      return sum * (query(epoch, row, col) + attention_statistics * query(epoch, row, 0));
    };
    return s;
  }
};

}  // namespace

std::vector<protocol_variant> spec_of<flash_decode>::variants() {
  std::vector<protocol_variant> variants;
  for (const pattern how : host_patterns) {
    if (how != pattern::automatic) variants.push_back(checked(attention_grid{how}));
  }
  return variants;
}

}  // namespace untax
