#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/locality/emit.hpp>

namespace untax::locality {
namespace {

using json = nlohmann::ordered_json;

std::string size_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.2f} MB", bytes / 1e6);
  return fmt::format("{:.1f} kB", bytes / 1e3);
}
std::string time_text(double seconds) {
  return seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3)
                         : fmt::format("{:.1f} us", seconds * 1e6);
}
std::string percent(const traffic& t) {
  return t.requested > 0 ? fmt::format("{:.1f} %", 100 * t.rate()) : "-";
}

json of(const outcome& o, const kernel& k) {
  json result;
  result["hit_rate"] = o.all.rate();
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    result["operands"].push_back({{"name", k.operands()[i].name},
                                  {"requested_bytes", o.operands[i].requested},
                                  {"hit_rate", o.operands[i].rate()}});
  }
  for (const traffic& t : o.domains) result["domain_hit_rates"].push_back(t.rate());
  if (o.last_level.requested > 0) result["last_level_hit_rate"] = o.last_level.rate();
  if (o.counted.requested > 0) result["counted_hit_rate"] = o.counted.rate();
  if (o.far_bytes > 0) result["other_side_bytes"] = o.far_bytes;
  result["next_level_bytes"] = o.next_bytes;
  result["memory_bytes"] = o.memory_bytes;
  result["seconds"] = o.seconds;
  result["compute_seconds"] = o.compute_seconds;
  result["simulated_blocks"] = o.blocks;
  if (o.seeds > 1) {
    result["seeds"] = o.seeds;
    result["hit_rate_spread"] = o.rate_spread;
    result["seconds_spread"] = o.seconds_spread;
  }
  return result;
}

json about(const kernel& k, const device& d) {
  json result{{"kernel", k.title()}, {"device", d.name}, {"blocks", k.blocks()}};
  for (const auto& [name, value] : k.all_sizes()) result["sizes"][name] = value;
  return result;
}

std::string row(const ranked& r) {
  return fmt::format("{:>10} {:>7} {:>7} {:>10} {:>10}  {}\n", time_text(r.found.seconds),
                     percent(r.found.all), percent(r.found.last_level),
                     size_text(r.found.next_bytes), size_text(r.found.memory_bytes), r.order.name);
}

}  // namespace

std::string text_of(const outcome& o, const kernel& k, const device& d) {
  std::string text = fmt::format("{:<14}{:>14}{:>10}\n", "operand", "asked for", "hits");
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    if (o.operands[i].requested == 0) continue;
    text += fmt::format("{:<14}{:>14}{:>10}\n", k.operands()[i].name,
                        size_text(o.operands[i].requested), percent(o.operands[i]));
  }
  text += fmt::format("{:<14}{:>14}{:>10}\n", "all", size_text(o.all.requested), percent(o.all));
  if (o.domains.size() > 1) {
    const auto [low, high] =
        std::minmax_element(o.domains.begin(), o.domains.end(),
                            [](const traffic& a, const traffic& b) { return a.rate() < b.rate(); });
    text += fmt::format("domains: {} to {}\n", percent(*low), percent(*high));
  }
  if (o.counted.requested > 0)
    text += fmt::format("as counters count requests: {}\n", percent(o.counted));
  if (d.last_level) text += fmt::format("last level: {}\n", percent(o.last_level));
  if (d.cache.sides > 1)
    text += fmt::format("from the other side of the cache {}\n", size_text(o.far_bytes));
  text += fmt::format("from the next level {}, from memory {}\n", size_text(o.next_bytes),
                      size_text(o.memory_bytes));
  if (o.seeds > 1) {
    text += fmt::format("over {} seeds: hits {} +- {:.1f} points, time {} +- {:.1f} %\n", o.seeds,
                        percent(o.all), 100 * o.rate_spread, time_text(o.seconds),
                        100 * o.seconds_spread / o.seconds);
  }
  text += fmt::format("time {}, without waiting for memory {}\n", time_text(o.seconds),
                      time_text(o.compute_seconds));
  if (o.blocks < k.blocks())
    text += fmt::format("({} of {} blocks were simulated)\n", o.blocks, k.blocks());
  return text;
}

std::string json_of(const outcome& o, const kernel& k, const device& d, const std::string& order,
                    const order_verdict* verdict) {
  json result = about(k, d);
  result["order"] = order;
  if (verdict != nullptr) {
    result["verdict"] = {{"is_bijection", verdict->is_bijection()},
                         {"distinct", verdict->distinct},
                         {"repeated", verdict->repeated},
                         {"outside", verdict->outside}};
  }
  result.update(of(o, k));
  return result.dump(1) + "\n";
}

std::string text_of(const search_result& r, const kernel& k, const device& d) {
  std::string text =
      fmt::format("{}\n{}: {} blocks, {} orders\n\n", k.title(), d.title, k.blocks(), r.tried);
  text += fmt::format("{:>10} {:>7} {:>7} {:>10} {:>10}  {}\n", "time", "hits", "last",
                      "next level", "memory", "order");
  for (const ranked& entry : r.best) text += row(entry);
  text += "\n";
  if (r.best.front().found.seeds > 1) {
    for (const ranked* order : {&r.baseline, &r.best.front()}) {
      text += fmt::format("Over {} seeds {}: hits {} +- {:.1f} points, time {} +- {:.1f} %.\n",
                          order->found.seeds, order->order.name, percent(order->found.all),
                          100 * order->found.rate_spread, time_text(order->found.seconds),
                          100 * order->found.seconds_spread / order->found.seconds);
    }
  }
  text += fmt::format("No order of these blocks hits more than {:.1f} %: {}.\n",
                      100 * r.limit.limit, r.limit.because);
  text += fmt::format("The best one is {:.1f} points below that, that with the most hits {:.1f}.\n",
                      100 * (r.limit.limit - r.best.front().found.all.rate()),
                      100 * (r.limit.limit - r.most_hits.found.all.rate()));
  if (!r.is_worth_it) text += fmt::format("Nothing is to be gained: {}.\n", r.why_not);
  return text;
}

std::string json_of(const search_result& r, const kernel& k, const device& d) {
  json result = about(k, d);
  result["orders_tried"] = r.tried;
  result["limit"] = {{"hit_rate", r.limit.limit},
                     {"because", r.limit.because},
                     {"compulsory", r.limit.compulsory},
                     {"in_waves", r.limit.in_waves},
                     {"any_timing", r.limit.any_timing}};
  result["distance"] = r.limit.limit - r.most_hits.found.all.rate();
  result["is_worth_it"] = r.is_worth_it;
  if (!r.is_worth_it) result["why_not"] = r.why_not;
  for (const ranked& ranked_order : r.best) {
    json entry{{"order", ranked_order.order.name}};
    entry.update(of(ranked_order.found, k));
    result["best"].push_back(std::move(entry));
  }
  return result.dump(1) + "\n";
}

}  // namespace untax::locality
