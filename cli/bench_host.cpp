#include "bench_host.hpp"

#include <fmt/format.h>

#include "src/taxes/time_text.hpp"

namespace untax::cli {

std::string text_of(const std::vector<bench::comparison>& all, int columns, text_style how) {
  using side = table::align;
  table rows({{"what"},
              {"median", side::right},
              {"p10", side::right},
              {"p90", side::right},
              {"ratio", side::right},
              {"bar"}});
  for (const bench::comparison& c : all) {
    const time_unit unit = unit_for(c.time.median);
    const auto times = [&](const std::string& what,
                           const spread& time) -> std::vector<std::string> {
      return {what, fmt::format("{} {}", in_unit(time.median, unit), unit.name),
              in_unit(time.p10, unit), in_unit(time.p90, unit)};
    };
    std::vector<std::string> ours = times(c.name, c.time);
    ours.push_back(fmt::format("{:.{}f}", c.ratio(), c.ratio() < 100 ? 2 : 0));
    ours.push_back(fmt::format("{} {}", c.bar_text(), c.met() ? "met" : "MISSED"));
    rows.add(std::move(ours));
    rows.add(times(c.reference, c.reference_time));
  }
  return rows.render(columns, how.utf8);
}

}  // namespace untax::cli
