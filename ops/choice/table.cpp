#include "ops/choice/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <untax/tile/shard.hpp>

#include "ops/common/registry.hpp"

namespace untax {

bool tuned_problem::gathers() const { return operator_named(operator_name).gathers; }
bool tuned_problem::columns_sharded() const {
  return operator_named(operator_name).columns_sharded;
}

std::string shape_text(const tuned_problem& p) {
  return fmt::format("{} x {} x {}{}", p.m, p.n, p.k, p.gather == gather_axis::k ? ", k" : "");
}

std::string family_text(const tuned_problem& p) {
  return fmt::format("{}{}{}, {} ranks", p.operator_name, p.gathers() ? ", " : "",
                     p.gathers() ? name_of(p.gather) : "", p.ranks);
}

bool same_family(const tuned_problem& a, const tuned_problem& b) noexcept {
  return a.operator_name == b.operator_name && a.gather == b.gather && a.ranks == b.ranks;
}

device_bounds device_rates::bounds(const tuned_problem& p) const {
  const bool sharded = p.columns_sharded();
  const auto ranks = static_cast<double>(p.ranks);
  const auto columns =
      static_cast<double>(sharded ? sharding{p.n, p.ranks, shard_granularity}.full() : p.n);
  const auto rows = static_cast<double>(p.m);
  const auto depth = static_cast<double>(p.k);
  const double sent = 2 * rows * (ranks - 1) * (sharded ? columns : depth / ranks);
  return {std::max(2 * rows * columns * depth / flops, 2 * columns * depth / memory), sent / link};
}

std::string tuning_table::text() const {
  return fmt::format("the table of {} ({}, commit {})", device, date.substr(0, 10), commit);
}

}  // namespace untax
