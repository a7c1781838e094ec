#include "ops/common/row_plans.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/core/pattern.hpp>

#include "ops/common/plan_agreement.hpp"

namespace untax {

void agree_on_plans(world& w, std::string_view operator_name, const std::string& problem,
                    const row_plans& plans) {
  std::string text =
      fmt::format("{}, any rows up to that, {}", problem, fields_of(plans.at(plans.capacity())));
  for (const std::int64_t end : plans.ends())
    text += fmt::format(", up to {} rows: {}", end, fields_of(plans.at(end)));
  w.agree(operator_name, text);
}

std::int64_t rows_of_run(std::string_view operator_name, int rank, std::string_view argument,
                         std::int64_t given, std::int64_t planned, const row_plans* plans) {
  if (plans == nullptr) return planned;
  if (given >= 0 && given <= planned) return given;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: {} has {} rows; this operator was planned for 0 to {}",
                          rank, operator_name, argument, given, planned));
}

std::shared_ptr<const row_plans> rows_on_device(std::string_view operator_name, int rank,
                                                const operator_options& options,
                                                const protocol_plan& plan, std::int64_t capacity) {
  if (options.move == direction::pull) {
    throw error(
        errc::unsupported,
        fmt::format(
            "rank {}: {}: senders of GPUs do not pull with option varying_rows; push would do",
            rank, operator_name));
  }
  return std::make_shared<const row_plans>(row_ends(capacity), [&](std::int64_t) { return plan; });
}

std::string told_of(const row_plans& plans) {
  return fmt::format(", any number of rows up to {} by {} plans", plans.capacity(),
                     plans.ends().size());
}

std::uint64_t most_ring_uses(const row_plans& plans, std::int64_t cols) {
  std::uint64_t most = 1;
  for (const std::int64_t end : plans.ends()) {
    const protocol_plan& plan = plans.at(end);
    if (plan.how != pattern::fused_specialized) continue;
    // Sharded rows are counted here; if rows are not sharded there are no more tiles.
    const std::int64_t down =
        plan.world * ceil_div(ceil_div<std::int64_t>(end, plan.world), plan.tile_m);
    const std::int64_t tiles = down * ceil_div(cols, plan.tile_n);
    most = std::max(most, static_cast<std::uint64_t>(tiles));
  }
  return most;
}

}  // namespace untax
