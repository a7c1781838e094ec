#include "bench/suites/locality.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include <untax/locality/library.hpp>
#include <untax/locality/search.hpp>

namespace untax::bench {
namespace {

constexpr const char* random_order = "random";
constexpr const char* described = "h200";  // problems are drawn for the lines and domains of this
                                           // device

/// Limits of problems, beyond which runs take too long or do not fit.
constexpr double most_steps = 4e6;  // of all blocks together
constexpr double most_operand_bytes = 16e9;
constexpr double most_requested_bytes = 3e11;

double steps_of(const locality::kernel& k) {
  double sum = 0;
  for (int block = 0; block < k.blocks(); ++block) sum += k.steps(block);
  return sum;
}
double operand_bytes(const locality::kernel& k) {
  double sum = 0;
  for (const locality::operand& o : k.operands())
    sum += static_cast<double>(o.rows) * static_cast<double>(o.columns) * o.element_bytes;
  return sum;
}
bool is_small(const locality::kernel& k) {
  return k.blocks() <= most_steps && operand_bytes(k) <= most_operand_bytes &&
         steps_of(k) <= most_steps && replayed_bytes(k) <= most_requested_bytes;
}

/// A GPU replays steps forward or backward. Other directions depend on the earlier blocks of a
/// processor, or on the places of other blocks.
bool can_be_replayed(const locality::block_order& o) {
  return o.way == order::direction::forward || o.way == order::direction::backward;
}

std::vector<std::string> names() {
  std::vector<std::string> lines;
  for (const locality::named_text& kernel : locality::built_in_kernels()) {
    if (!locality::kernel_named(kernel.name, {}).has_dependences()) lines.push_back(kernel.name);
  }
  return lines;
}

std::vector<replay_problem> grid() {
  const locality::device d = locality::device_named(described);
  std::vector<replay_problem> problems;
  for (const std::string& name : names()) {
    replay_problem p{name, {}, {}};
    for (double keys = 32768; !is_small(p.kernel(d.sector)); keys /= 2)
      p.sizes = {{"heads", 32}, {"keys", keys}};
    const locality::kernel k = p.kernel(d.sector);
    locality::search_options how;
    how.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const locality::search_result searched = locality::search(k, d, how);
    const auto best = std::ranges::find_if(
        searched.best, [](const locality::ranked& r) { return can_be_replayed(r.order); });
    std::vector<std::string> orders = {searched.baseline.order.name, random_order};
    if (best != searched.best.end() && best->order.name != orders.front())
      orders.push_back(best->order.name);
    for (const std::string& order : orders) {
      p.order = order;
      problems.push_back(p);
    }
  }
  return problems;
}

class drawing {
 public:
  explicit drawing(std::uint64_t seed) : random_(seed) {}

  /// A random kernel, with sizes within a factor of four of those of its text, and an order;
  /// nothing if it is too large.
  [[nodiscard]] std::optional<replay_problem> draw(const locality::device& d) {
    static const std::vector<std::string> kernels = names();
    replay_problem p{kernels[below(kernels.size())], {}, {}};
    const locality::kernel usual = p.kernel(d.sector);
    for (const auto& [name, value] : usual.all_sizes()) {
      if (name == "m" || name == "n" || name == "k" || name == "keys") p.sizes[name] = sized(value);
      if (name == "heads") p.sizes[name] = static_cast<double>(1ULL << below(8));
      if (name == "causal") p.sizes[name] = static_cast<double>(below(2));
    }
    const locality::kernel k = p.kernel(d.sector);
    if (!is_small(k)) return std::nullopt;
    p.order = random_order;
    if (below(4) == 0) return p;
    std::vector<locality::block_order> orders = locality::order_space(k, d.domains);
    std::erase_if(orders, [](const auto& o) { return !can_be_replayed(o); });
    p.order = orders[below(orders.size())].name;
    return p;
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t end) { return random_() % end; }
  [[nodiscard]] double sized(double usual) {
    constexpr double granule = 128;
    const double power = std::uniform_real_distribution(-2.0, 1.0)(random_);
    return std::max(2.0, std::round(usual * std::exp2(power) / granule)) * granule;
  }

  std::mt19937_64 random_;
};

}  // namespace

locality::kernel replay_problem::kernel(int line) const {
  return locality::kernel_named(name, sizes, line);
}

locality::schedule replay_problem::schedule(const locality::kernel& k, int domains) const {
  if (order != random_order) {
    const locality::block_order result = locality::order_named(k, domains, order);
    return {result.table(k.blocks()), result.way};
  }
  locality::schedule result;
  result.blocks.resize(static_cast<std::size_t>(k.blocks()));
  std::iota(result.blocks.begin(), result.blocks.end(), 0);
  std::mt19937_64 random(result.blocks.size());
  std::ranges::shuffle(result.blocks, random);
  return result;
}

std::optional<locality::device> description_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const locality::named_text& built_in_device : locality::built_in_devices()) {
    if (name.find(built_in_device.name) != std::string::npos)
      return locality::device_named(built_in_device.name);
  }
  return std::nullopt;
}

double step_seconds(const locality::kernel& k, const std::optional<locality::device>& d) {
  if (!d) return 0;
  const double share = locality::assumptions{}.efficiency * d->flops / d->all_processors();
  return k.flops() * k.resident() / share;
}

double replayed_bytes(const locality::kernel& k) {
  double sum = 0;
  for (int block = 0; block < k.blocks(); ++block) {
    for (const locality::access& a : k.accesses(block)) {
      const int times = a.when == locality::moment::every_step ? k.steps(block) : 1;
      const int bytes = k.operands()[static_cast<std::size_t>(a.operand)].element_bytes;
      sum += static_cast<double>(a.rows * a.columns) * bytes * times;
    }
  }
  return sum;
}

std::vector<replay_problem> replay_problems(const replay_suite_options& options) {
  if (options.problems == 0) return grid();
  const locality::device d = locality::device_named(described);
  drawing from(options.seed);
  std::vector<replay_problem> problems;
  while (static_cast<int>(problems.size()) < options.problems) {
    if (auto p = from.draw(d)) problems.push_back(std::move(*p));
  }
  return problems;
}

}  // namespace untax::bench
