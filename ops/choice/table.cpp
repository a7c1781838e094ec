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

std::optional<reduce_target> tuned_problem::sums_to() const {
  return operator_named(operator_name).sums_to;
}

std::string shape_text(const tuned_problem& p) {
  return fmt::format("{} x {} x {}{}", p.m, p.n, p.k, p.gather == gather_axis::k ? ", k" : "");
}

std::string family_text(const tuned_problem& p) {
  std::string kind;
  if (p.gathers()) kind = fmt::format(", {}", name_of(p.gather));
  if (p.sums_to()) kind = fmt::format(", {} partials", name_of(p.partials));
  return fmt::format("{}{}, {} ranks", p.operator_name, kind, p.ranks);
}

bool same_family(const tuned_problem& a, const tuned_problem& b) noexcept {
  return a.operator_name == b.operator_name && a.gather == b.gather && a.ranks == b.ranks &&
         a.partials == b.partials;
}

device_bounds device_rates::bounds(const tuned_problem& p) const {
  const bool sharded = p.columns_sharded();
  const std::optional<reduce_target> target = p.sums_to();
  const auto ranks = static_cast<double>(p.ranks);
  const auto full = [&](std::int64_t extent) {
    return static_cast<double>(sharding{extent, p.ranks, shard_granularity}.full());
  };
  const auto columns = sharded ? full(p.n) : static_cast<double>(p.n);
  const auto depth = target ? full(p.k) : static_cast<double>(p.k);
  const auto rows = static_cast<double>(p.m);
  const double peers = ranks - 1;
  double sent = 2 * rows * peers * (sharded ? columns : depth / ranks);
  if (target) {
    // Partial results go to the owners of rows; if all ranks get the sum, the owners send it to all
    // ranks.
    const double share = rows * columns * peers / ranks;
    sent = share * static_cast<double>(size_of(p.partials));
    if (*target == reduce_target::everywhere) sent += 2 * share;
  }
  return {std::max(2 * rows * columns * depth / flops, 2 * columns * depth / memory), sent / link};
}

std::string tuning_table::text() const {
  return fmt::format("the table of {} ({}, commit {})", device, date.substr(0, 10), commit);
}

std::string joined(std::initializer_list<const char*> lines) {
  std::string text;
  for (const char* line : lines) text.append(line).append("\n");
  return text;
}

const std::vector<tuning_table>& built_in_tables() {
  static const std::vector<tuning_table> tables = [] {
    std::vector<tuning_table> parsed;
    for (const auto& [name, text] : built_in_texts()) parsed.push_back(parse_table(text, name));
    return parsed;
  }();
  return tables;
}

}  // namespace untax
