#include <untax/locality/search.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "src/core/start_threads.hpp"
#include "src/locality/pieces.hpp"

namespace untax::locality {
namespace {

/// Calls work(0) ... work(count - 1), each once, on at most `threads` threads including the caller.
/// If calls throw, rethrows one of the exceptions at the end.
void for_each(int count, int threads, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  std::exception_ptr failed;
  std::mutex lock;
  std::vector<std::thread> running;
  const auto take_part = [&](int /*thread*/) {
    for (int i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> hold(lock);
        failed = std::current_exception();
      }
    }
  };
  try {
    start_threads(running, std::min(threads, count) - 1, "untax locality", take_part);
  } catch (const error&) {
    // The threads that could be started do all the work.
  }
  take_part(0);
  for (std::thread& thread : running) thread.join();
  if (failed) std::rethrow_exception(failed);
}

/// Estimates the cache lookups of the whole kernel from at most 64 blocks.
double touches(const kernel& k, const device& d) {
  const pieces sizes(k, d);
  double seen = 0;
  const int looks = std::min(k.blocks(), 64);
  for (int i = 0; i < looks; ++i) {
    const int block = static_cast<int>(std::int64_t{k.blocks()} * i / looks);
    for (const access& a : k.accesses(block)) {
      double distance = 0;
      k.for_granules(a, 0, [&](std::int64_t) {
        distance += sizes.units[static_cast<std::size_t>(a.operand)];
      });
      seen += distance * (a.when == moment::every_step ? k.steps(block) : 1);
    }
  }
  return seen / looks * k.blocks();
}

/// The kernel, effort and assumptions of the first pass over all orders.
struct first_look {
  kernel k;
  effort much;
  assumptions how;
};

first_look make_first_look(const kernel& k, const device& d, const search_options& options) {
  first_look look{k, {}, options.how};
  if (k.drifts()) {
    look.how.steps = options.drifting_steps;
    look.how.waves = 8;
    look.much.domains = 1;
    look.k = k.remembered();
    return look;
  }
  int factor = 1;
  while (touches(look.k, d) > options.touches && factor < 64 && k.steps(0) >= 4 * factor) {
    factor *= 2;
    look.k = k.coarsened(factor);
  }
  const double total = touches(look.k, d);
  if (total > 2 * options.touches && d.domains > 2) look.much.domains = 2;
  const double domains = look.much.domains > 0 ? look.much.domains : d.domains;
  const double per_wave =
      total / k.blocks() * static_cast<double>(d.processors) * k.resident() * domains;
  if (total * domains / d.domains > 2 * options.touches)
    look.much.waves = std::max(4, static_cast<int>(options.touches / per_wave));
  look.k = look.k.remembered();
  return look;
}

/// Compares times in steps of 0.5 %, then the busy time of the levels below the caches.
bool is_better(const outcome& a, const outcome& b, const device& d) {
  const auto step = [](const outcome& o) { return std::lround(std::log(o.seconds) * 200); };
  if (step(a) != step(b)) return step(a) < step(b);
  const auto busy = [&](const outcome& o) {
    const double next = d.last_level ? o.next_bytes / d.last_level->bytes_per_second : 0;
    return next + o.memory_bytes / d.memory.bytes_per_second;
  };
  const auto grain = [&](const outcome& o) { return std::lround(std::log(busy(o) + 1e-12) * 100); };
  return grain(a) < grain(b);
}

/// Whether no order can be better: the hit rate is within 0.002 of the limit, and memory sends each
/// piece about once.
bool is_the_best(const outcome& o, const certificate& limit) {
  const double once = (1 - limit.compulsory) * o.all.requested;
  return o.all.rate() > limit.limit - 0.002 && o.memory_bytes < 1.01 * once;
}

void judge(search_result& result, const kernel& k) {
  const ranked& best = result.best.front();
  const double gained = best.found.all.rate() - result.baseline.found.all.rate();
  const double quicker = result.baseline.found.seconds / best.found.seconds;
  const double fewer = result.baseline.found.memory_bytes / std::max(1.0, best.found.memory_bytes);
  if (gained > 0.005 || quicker > 1.01 || fewer > 1.02) return;
  result.is_worth_it = false;
  const std::string of_baseline = result.baseline.order.name == "as numbered"
                                      ? "the order of the numbers"
                                      : result.baseline.order.name;
  const double room = result.limit.limit - result.baseline.found.all.rate();
  if (room < 0.005) {
    result.why_not = fmt::format("no order can hit more than {:.1f} %, for {}; {} hits {:.1f} %",
                                 100 * result.limit.limit, result.limit.because, of_baseline,
                                 100 * result.baseline.found.all.rate());
  } else if (k.axes().size() == 1 && result.baseline.order.parts.empty()) {
    result.why_not = "the blocks lie in a row, and neighbours run side by side as it is";
  } else {
    result.why_not =
        fmt::format("of {} orders none does better than {}, {:.1f} points below the bound",
                    result.tried, of_baseline, 100 * room);
  }
}

/// Removes orders that equal an earlier one.
std::vector<block_order> different(std::vector<block_order> orders, int blocks) {
  std::set<std::pair<std::uint64_t, int>> known;
  std::vector<block_order> kept;
  for (block_order& order : orders) {
    std::uint64_t hash = 1469598103934665603U;
    for (int i = 0; i < blocks; ++i)
      hash = (hash ^ static_cast<std::uint64_t>(order.block(i))) * 1099511628211U;
    if (known.insert({hash, static_cast<int>(order.way)}).second) kept.push_back(std::move(order));
  }
  return kept;
}

}  // namespace

search_result search(const kernel& k, const device& d, const search_options& options) {
  search_result result;
  result.limit = certify(k, d);
  const block_order& baseline = options.baseline;
  const auto with_all_seeds = [&](const block_order& order) {
    return simulate(k, d, {order.table(k.blocks()), order.way}, {}, options.how);
  };
  result.baseline = {baseline, with_all_seeds(baseline)};
  if (is_the_best(result.baseline.found, result.limit)) {
    result.tried = 1;
    result.best = {result.baseline};
    result.most_hits = result.baseline;
    judge(result, k);
    return result;
  }
  std::vector<block_order> space{baseline};
  for (block_order& order : order_space(k, d.domains)) space.push_back(std::move(order));
  space = different(std::move(space), k.blocks());
  result.tried = static_cast<int>(space.size());
  if (options.begin) options.begin(result.tried + std::min(result.tried, options.keep + 2));
  const first_look look = make_first_look(k, d, options);
  std::vector<outcome> seen(space.size());
  const auto try_one = [&](const block_order& order, const kernel& reduced, const effort& much,
                           const assumptions& how) {
    assumptions single = how;
    single.seeds = 1;
    return simulate(reduced, d, {order.table(k.blocks()), order.way}, much, single);
  };
  for_each(result.tried, options.threads, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    seen[at] = try_one(space[at], look.k, look.much, look.how);
    if (options.progress) options.progress();
  });
  std::vector<int> by_rank(space.size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](int a, int b) {
    return is_better(seen[static_cast<std::size_t>(a)], seen[static_cast<std::size_t>(b)], d);
  });
  // Simulated in full: the best orders, the order with the most hits, and the baseline.
  const auto hits = std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) {
    return a.all.rate() < b.all.rate();
  });
  std::vector<int> chosen{0, static_cast<int>(hits - seen.begin())};
  for (const int i : by_rank) {
    if (static_cast<int>(chosen.size()) == options.keep + 2) break;
    if (i != chosen[0] && i != chosen[1]) chosen.push_back(i);
  }
  std::vector<ranked> full(chosen.size());
  for_each(static_cast<int>(chosen.size()), options.threads, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    full[at].order = space[static_cast<std::size_t>(chosen[at])];
    full[at].found = i == 0 ? result.baseline.found : try_one(full[at].order, k, {}, options.how);
    if (options.progress) options.progress();
  });
  result.most_hits = *std::max_element(full.begin(), full.end(), [](const auto& a, const auto& b) {
    return a.found.all.rate() < b.found.all.rate();
  });
  if (chosen[0] == chosen[1]) full.erase(full.begin() + 1);
  std::stable_sort(full.begin(), full.end(), [&](const ranked& a, const ranked& b) {
    return is_better(a.found, b.found, d);
  });
  result.best = std::move(full);
  if (k.drifts() && options.how.seeds > 1) {
    ranked& best = result.best.front();
    const bool is_baseline = best.order.name == baseline.name;
    best.found = is_baseline ? result.baseline.found : with_all_seeds(best.order);
  }
  judge(result, k);
  return result;
}

}  // namespace untax::locality
