#include <cmath>

#include <fmt/format.h>

#include <untax/locality/block_order.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/published.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality {
namespace {

constexpr const char* orders[] = {"naive block-first", "swizzled block-first", "naive head-first",
                                  "swizzled head-first"};
constexpr std::size_t order_count = std::size(orders);

/// A case of a figure. If the text of the paper has values, they are those of the orders above; ""
/// if it has none.
struct sweep_case {
  const char* figure;
  double heads, kv_heads, keys, batches, width;
  bool is_backward;
  const char* hits[order_count];
  const char* speeds[order_count];
};

constexpr const char* few = "about 90";
constexpr const char* same = "about 1";
constexpr sweep_case cases[] = {
    {"12", 8, 8, 8192, 1, 128, false, {few, few, few, few}, {same, same, same, "1"}},
    {"12", 8, 8, 131072, 1, 128, false, {few, few, few, few}, {same, same, same, "1"}},
    {"12", 32, 32, 32768, 1, 128, false, {"", "", "", ""}, {"", "", "", "1"}},
    {"12",
     64,
     64,
     32768,
     1,
     128,
     false,
     {"", "", "", ""},
     {"0.64 to 0.70", "0.64 to 0.70", same, "1"}},
    {"12",
     64,
     64,
     131072,
     1,
     128,
     false,
     {"", "", "", ""},
     {"0.64 to 0.70", "0.64 to 0.70", "0.90", "1"}},
    {"12, 13",
     128,
     128,
     32768,
     1,
     128,
     false,
     {"", "", "", ""},
     {"0.64 to 0.70", "0.64 to 0.70", same, "1"}},
    {"12, 13",
     128,
     128,
     131072,
     1,
     128,
     false,
     {"1", "1", "40 to 60", "90 to 96"},
     {"0.64 to 0.70", "0.64 to 0.70", "0.90", "1"}},
    {"12, 13",
     128,
     128,
     131072,
     8,
     128,
     false,
     {"1", "1", "40 to 60", "90 to 96"},
     {"0.64 to 0.70", "0.64 to 0.70", "0.90", "1"}},
    {"14", 32, 8, 131072, 1, 128, false, {"", "", "", ""}, {"", same, "0.90 to 1", "1"}},
    {"14",
     64,
     8,
     131072,
     1,
     128,
     false,
     {"", "", "", ""},
     {"less than of 32", same, "0.90 to 1", "1"}},
    {"14",
     128,
     8,
     131072,
     1,
     128,
     false,
     {"", "", "", ""},
     {"less than of 64", same, "0.90 to 1", "1"}},
    {"15",
     128,
     128,
     131072,
     8,
     56,
     false,
     {"", "", "", ""},
     {"below 0.65", "0.76", "unsteady", "1"}},
    {"16", 128, 128, 131072, 1, 128, true, {"", "", "", ""}, {"0.91", "0.94", "0.91", "1"}},
};

}  // namespace

int sweep_simulations() { return static_cast<int>(std::size(cases) * order_count); }

std::string sweeps(int seeds, const std::function<void()>& progress) {
  const device d = device_named("mi300x");
  std::string text =
      "arXiv 2511.02132, figures 12 to 16: attention, MI300X, hits in L2 and speed beside swizzled "
      "head-first\n\n| figure | heads | keys | batches | order | hits, published | simulated | "
      "speed, published | simulated |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const sweep_case& c : cases) {
    const kernel k =
        kernel_named(c.is_backward ? "attention_backward" : "attention", {{"heads", c.heads},
                                                                          {"kv_heads", c.kv_heads},
                                                                          {"keys", c.keys},
                                                                          {"batches", c.batches},
                                                                          {"width", c.width}});
    assumptions how;
    how.seeds = seeds;
    std::vector<outcome> simulated;
    for (const char* name : orders) {
      const block_order order = order_named(k, d.domains, name);
      simulated.push_back(simulate(k, d, {order.table(k.blocks()), order.way}, {}, how));
      if (progress) progress();
    }
    const outcome& best = simulated.back();
    for (std::size_t i = 0; i < order_count; ++i) {
      const outcome& o = simulated[i];
      const double speed = best.seconds / o.seconds;
      const double spread = i + 1 == order_count
                                ? 0
                                : speed * std::hypot(o.seconds_spread / o.seconds,
                                                     best.seconds_spread / best.seconds);
      const std::string hits = *c.hits[i] == '\0' ? "" : std::string(c.hits[i]) + " %";
      text += fmt::format(
          "| {} | {} of {:.0f}{} | {:.0f} | {:.0f} | {} | {} | {:.1f} +- {:.1f} % | "
          "{} | {:.2f} +- {:.2f} |\n",
          c.figure, c.heads, c.kv_heads,
          c.is_backward   ? ", backward"
          : c.width == 56 ? ", width 56"
                          : "",
          c.keys, c.batches, orders[i], hits, 100 * o.all.rate(), 100 * o.rate_spread, c.speeds[i],
          speed, spread);
    }
  }
  return text + fmt::format("\nMeans and twice the standard deviation of {} seeds.\n", seeds);
}

}  // namespace untax::locality
