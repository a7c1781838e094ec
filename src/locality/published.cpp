#include <untax/locality/published.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <untax/locality/block_order.hpp>
#include <untax/locality/library.hpp>
#include <untax/locality/simulate.hpp>

namespace untax::locality {
namespace {

constexpr const char* gemm_paper = "arXiv 2511.08083, table 4: GEMM, MI355X";
constexpr const char* head_first_paper =
    "arXiv 2511.02132: attention, MI300X, 128 heads, 131072 keys";
constexpr const char* head_first_backward =
    "arXiv 2511.02132: attention backward, MI300X, 128 heads, 131072 keys";
constexpr const char* library_change =
    "github.com/ROCm/FlyDSL, change 919: attention, MI355X, 64 heads, 65536 keys";
constexpr const char* own = "measured for this project: attention, one H200, 128 heads, 32768 keys";
constexpr const char* own_others =
    "measured for this project: attention, one H200, time block-first / head-first";

constexpr int seeds = 3;

/// A mean over seeds.
struct simulated_value {
  double mean = 0;
  double spread = 0;
};

simulated_value hits_of(const outcome& o) { return {100 * o.all.rate(), 100 * o.rate_spread}; }

simulated_value time_ratio(const outcome& a, const outcome& b) {
  const double ratio = a.seconds / b.seconds;
  return {ratio, ratio * std::hypot(a.seconds_spread / a.seconds, b.seconds_spread / b.seconds)};
}

/// Simulates the case of each figure, and each case once.
class simulations {
 public:
  explicit simulations(std::string only) : only_(std::move(only)) {}

  void add(const char* source, std::string what, const char* unit, double from, double to,
           double allowed, const std::function<simulated_value()>& simulate_value) {
    const bool is_asked = only_.empty() || std::string(source).find(only_) != std::string::npos ||
                          what.find(only_) != std::string::npos;
    if (!is_asked) return;
    const simulated_value simulated = simulate_value();
    found_.push_back(
        {source, std::move(what), unit, from, to, simulated.mean, simulated.spread, allowed});
  }

  const outcome& gemm(int size, int band, int chunk) {
    return known(fmt::format("gemm {} {} {}", size, band, chunk), [&] {
      const double edge = size;
      const kernel k = kernel_named(
          "gemm", {{"m", edge}, {"n", edge}, {"k", edge}, {"tile_m", 192}, {"tile_n", 256}});
      const int x = k.axes()[1].extent;
      const int y = k.axes()[0].extent;
      block_order result;
      if (chunk > 0) {
        result.parts = {order::chunked_remap{k.blocks(), 8, chunk},
                        plane<order::transposed<order::banded>>{
                            1, order::through{order::transposed{order::banded{y, x, band, 1}}}}};
      }
      return simulate(k, device_named("mi355x"), {result.table(k.blocks()), result.way});
    });
  }

  const outcome& attention(const char* name, const kernel::sizes& sizes, const char* order,
                           const char* which = "attention") {
    std::string key = fmt::format("{} {} {}", which, name, order);
    for (const auto& [size, value] : sizes) key += fmt::format(" {}={}", size, value);
    return known(key, [&] {
      const kernel k = kernel_named(which, sizes);
      const device d = device_named(name);
      const block_order block_order_of_row = order_named(k, d.domains, order);
      assumptions how;
      how.seeds = seeds;
      return simulate(k, d, {block_order_of_row.table(k.blocks()), block_order_of_row.way}, {},
                      how);
    });
  }

  std::vector<published_figure> take() { return std::move(found_); }

 private:
  template <class Make>
  const outcome& known(const std::string& key, const Make& make) {
    const auto at = done_.find(key);
    return at != done_.end() ? at->second : done_.emplace(key, make()).first->second;
  }

  std::string only_;
  std::map<std::string, outcome> done_;
  std::vector<published_figure> found_;
};

void add_gemm(simulations& simulations_of_rows) {
  struct line {
    int size, band, chunk;
    double hits, last;
  };
  const line lines[] = {{9216, 0, 0, 55, 95},  {9216, 7, 216, 79, 24}, {9216, 5, 25, 75, 93},
                        {14592, 0, 0, 36, 76}, {14592, 8, 542, 79, 7}, {14592, 8, 64, 78, 55}};
  for (const line& l : lines) {
    const std::string what = l.chunk == 0 ? fmt::format("m = n = k = {}, row after row", l.size)
                                          : fmt::format("m = n = k = {}, bands of {}, chunks of {}",
                                                        l.size, l.band, l.chunk);
    simulations_of_rows.add(gemm_paper, what + ": hits in L2", "%", l.hits, l.hits, 6, [&] {
      return hits_of(simulations_of_rows.gemm(l.size, l.band, l.chunk));
    });
    simulations_of_rows.add(
        gemm_paper, what + ": hits in the last level", "%", l.last, l.last, 6, [&] {
          return simulated_value{
              100 * simulations_of_rows.gemm(l.size, l.band, l.chunk).last_level.rate(), 0};
        });
  }
}

void add_attention(simulations& simulations_of_rows) {
  const kernel::sizes paper{{"heads", 128}, {"keys", 131072}};
  const auto hits = [&](const char* device, const kernel::sizes& sizes, const char* order) {
    return hits_of(simulations_of_rows.attention(device, sizes, order));
  };
  const auto ratio = [&](const char* device, const kernel::sizes& sizes, const char* first,
                         const char* other) {
    return time_ratio(simulations_of_rows.attention(device, sizes, first),
                      simulations_of_rows.attention(device, sizes, other));
  };
  simulations_of_rows.add(head_first_paper, "naive block-first: hits in L2", "%", 0, 1, 4,
                          [&] { return hits("mi300x", paper, "naive block-first"); });
  simulations_of_rows.add(head_first_paper, "swizzled block-first: hits in L2", "%", 0, 1, 4,
                          [&] { return hits("mi300x", paper, "swizzled block-first"); });
  simulations_of_rows.add(head_first_paper, "naive head-first: hits in L2", "%", 40, 60, 6,
                          [&] { return hits("mi300x", paper, "naive head-first"); });
  simulations_of_rows.add(head_first_paper, "swizzled head-first: hits in L2", "%", 90, 96, 2,
                          [&] { return hits("mi300x", paper, "swizzled head-first"); });
  simulations_of_rows.add(
      head_first_paper, "time, swizzled head-first / naive block-first", "", 0.64, 0.70, 0.05,
      [&] { return ratio("mi300x", paper, "swizzled head-first", "naive block-first"); });
  const auto backward = [&](const char* order) -> const outcome& {
    return simulations_of_rows.attention("mi300x", paper, order, "attention_backward");
  };
  struct quicker {
    const char* order;
    double measured;
  };
  for (const quicker& than :
       {quicker{"naive block-first", 0.91}, quicker{"swizzled block-first", 0.94},
        quicker{"naive head-first", 0.91}}) {
    simulations_of_rows.add(
        head_first_backward, fmt::format("time, swizzled head-first / {}", than.order), "",
        than.measured, than.measured, 0.05,
        [&] { return time_ratio(backward("swizzled head-first"), backward(than.order)); });
  }
  const kernel::sizes library{{"heads", 64}, {"keys", 65536}};
  simulations_of_rows.add(library_change, "before, block-first: hits in L2", "%", 2.36, 2.36, 12,
                          [&] { return hits("mi355x", library, "naive block-first"); });
  simulations_of_rows.add(library_change, "after, head-first: hits in L2", "%", 93.62, 93.62, 4,
                          [&] { return hits("mi355x", library, "swizzled head-first"); });
  const kernel::sizes sizes_of_decode{{"heads", 128}, {"keys", 32768}};
  simulations_of_rows.add(own, "block-first: hits of L2", "%", 0.2, 0.2, 6,
                          [&] { return hits("h200", sizes_of_decode, "naive block-first"); });
  simulations_of_rows.add(own, "head-first: hits of L2", "%", 99.1, 99.1, 6,
                          [&] { return hits("h200", sizes_of_decode, "naive head-first"); });
  simulations_of_rows.add(own, "block-first: GB from memory", "", 550.8, 550.8, 28, [&] {
    return simulated_value{
        simulations_of_rows.attention("h200", sizes_of_decode, "naive block-first").memory_bytes *
            1e-9,
        0};
  });
  simulations_of_rows.add(own, "head-first: GB from memory", "", 3.93, 3.93, 0.6, [&] {
    return simulated_value{
        simulations_of_rows.attention("h200", sizes_of_decode, "naive head-first").memory_bytes *
            1e-9,
        0};
  });
  struct line {
    double batches, heads, kv_heads, keys, causal, measured;
  };
  const line lines[] = {{1, 128, 128, 32768, 0, 1.22}, {1, 128, 128, 32768, 1, 1.17},
                        {1, 64, 64, 32768, 0, 1.18},   {1, 64, 64, 32768, 1, 1.27},
                        {1, 64, 8, 32768, 0, 1.00},    {4, 48, 48, 8192, 0, 0.93}};
  for (const line& l : lines) {
    const kernel::sizes sizes{{"batches", l.batches},
                              {"heads", l.heads},
                              {"kv_heads", l.kv_heads},
                              {"keys", l.keys},
                              {"causal", l.causal}};
    simulations_of_rows.add(own_others,
                            fmt::format("{} x {} heads, {} of keys, {} keys{}", l.batches, l.heads,
                                        l.kv_heads, l.keys, l.causal > 0 ? ", causal" : ""),
                            "", l.measured, l.measured, 0.1, [&] {
                              return ratio("h200", sizes, "naive block-first", "naive head-first");
                            });
  }
}

std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

double published_figure::off() const {
  if (simulated < measured_from) return measured_from - simulated;
  return simulated > measured_to ? simulated - measured_to : 0;
}

std::vector<published_figure> published(const std::string& only) {
  simulations all(only);
  add_gemm(all);
  add_attention(all);
  return all.take();
}

std::string markdown_of(const std::vector<published_figure>& figures) {
  std::string text;
  std::string source;
  double gemm_off = 0;
  int gemm_figures = 0;
  for (const published_figure& f : figures) {
    if (f.source != source) {
      text += fmt::format("{}{}\n\n| | published | simulated | off by | |\n|---|---|---|---|---|\n",
                          source.empty() ? "" : "\n", f.source);
      source = f.source;
    }
    const std::string measured = f.measured_from == f.measured_to
                                     ? number(f.measured_from)
                                     : number(f.measured_from) + " to " + number(f.measured_to);
    const std::string unit = f.unit.empty() ? "" : " " + f.unit;
    const std::string spread = f.spread >= 0.005 ? " +- " + number(f.spread) : "";
    text += fmt::format("| {} | {}{} | {}{}{} | {} | {} |\n", f.what, measured, unit,
                        number(f.simulated), spread, unit, number(f.off()),
                        f.is_reproduced() ? "" : "**not reproduced**");
    if (f.source == gemm_paper) {
      gemm_off += f.off();
      ++gemm_figures;
    }
  }
  if (gemm_figures > 0) {
    text += fmt::format("\nThe {} hit rates of GEMM are off by {} points on average.\n",
                        gemm_figures, number(gemm_off / gemm_figures));
  }
  return text;
}

}  // namespace untax::locality
