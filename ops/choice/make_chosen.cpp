#include "ops/choice/make_chosen.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/choice/choose.hpp"
#include "ops/choice/measured_on.hpp"
#include "ops/choice/row_times.hpp"

namespace untax {
namespace {

/// Own kernels that take this many times as long as the quickest one with all rows of an end are
/// not timed with fewer rows.
constexpr double most_over_least = 1.4;

std::string names_of(const std::vector<pattern>& patterns) {
  std::string names;
  for (const pattern how : patterns)
    names += (names.empty() ? "" : ", ") + std::string(name_of(how));
  return names;
}

std::string sorted_text(pattern_times times) {
  std::ranges::stable_sort(times, {}, &prediction::expected::seconds);
  return text_of(times);
}

/// "up to 64 rows fused_sequential, up to 1024 rows bulk_library, ".
std::string patterns_text(const std::vector<operator_up_to>& operators) {
  std::string text;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (i + 1 < operators.size() && operators[i + 1].op->how() == operators[i].op->how()) continue;
    text += fmt::format("up to {} rows {}, ", operators[i].rows, name_of(operators[i].op->how()));
  }
  return text;
}

/// The state of one call of `make_chosen`.
class chooser {
 public:
  chooser(world& w, const tuned_problem& problem, std::span<const std::int64_t> ends,
          std::string_view device, const chosen_parts& parts, const environment& env)
      : world_(w),
        problem_(problem),
        ends_(ends),
        parts_(parts),
        measures_(env.number_or_fallback(variable::measure, 0, 1) == 1) {
    const std::optional<tuning_table> own = own_table(env);
    for (const std::int64_t rows : ends) {
      tuned_problem of_rows = problem;
      of_rows.m = rows;
      const std::vector<pattern> usual = parts.usual ? parts.usual(rows) : std::vector<pattern>();
      choices_.push_back(choose(of_rows, {.device = device,
                                          .kernels = kernel_sources(),
                                          .own = own ? &*own : nullptr,
                                          .tables = built_in_tables(),
                                          .usual = usual,
                                          .rows_vary = ends.size() > 1}));
    }
  }

  chosen_operators make() {
    const std::vector<std::size_t> places = places_to_time();
    agree(places);
    if (!places.empty()) time(places);
    chosen_operators result;
    try {
      result.by_rows = operators();
    } catch (const error& e) {
      // Inputs for timing take memory, too; all ranks are out of memory.
      if (e.code() != errc::out_of_memory || !seconds_of_) throw;
      seconds_of_ = {};
      result.by_rows = operators();
    }
    seconds_of_ = {};
    result.reason = reason(result.by_rows) + refusals_;
    if (library_ && parts_.libraries) result.libraries = parts_.libraries();
    return result;
  }

 private:
  std::vector<operator_up_to> operators() {
    return operators_of(ends_.size(), [&](std::size_t end, auto& operators_made) {
      add_operators_of(end, operators_made);
    });
  }
  [[nodiscard]] bool varies() const { return ends_.size() > 1; }
  [[nodiscard]] std::vector<std::size_t> places_to_time() const {
    std::vector<std::size_t> places = measures_ ? ends_to_time(ends_) : std::vector<std::size_t>();
    std::erase_if(places, [&](std::size_t i) { return choices_[i].likely.size() <= 1; });
    return places;
  }

  /// Ranks with other tables or variables would choose otherwise, and wait for each other.
  void agree(const std::vector<std::size_t>& places) {
    std::string text;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (varies()) text += fmt::format("{}up to {} rows: ", i > 0 ? "; " : "", ends_[i]);
      text += names_of(choices_[i].order);
    }
    for (const std::size_t i : places) {
      text += fmt::format(", {} patterns timed", choices_[i].likely.size());
      if (varies()) text += fmt::format(" with {} and {} rows", ends_[i], rows_below(ends_, i));
    }
    world_.agree(problem_.operator_name + ": what automatic stands for", text);
  }

  void time(const std::vector<std::size_t>& places) {
    seconds_of_ = parts_.timer();
    if (!seconds_of_) {
      refusals_ += "; nothing was timed, since there is no memory for it, or ranks share a GPU";
      return;
    }
    for (const std::size_t i : places) {
      const std::int64_t fewer = varies() ? rows_below(ends_, i) : 0;
      double least = std::numeric_limits<double>::max();
      for (const pattern how : choices_[i].likely) {
        const std::shared_ptr<device_operator> op = made_to_be_timed(how, i);
        if (!op) continue;
        const double seconds = seconds_with(*op, ends_[i]);
        timed_[i].push_back({how, seconds});
        least = std::min(least, seconds);
        if (fewer > 0 && (how == pattern::bulk_library || seconds < most_over_least * least))
          timed_below_[i].push_back({how, seconds_with(*op, fewer)});
      }
    }
  }
  double seconds_with(device_operator& op, std::int64_t rows) const {
    if (varies()) op.set_rows(rows);
    return seconds_of_(op);
  }

  /// Null if all ranks refuse the operator.
  std::shared_ptr<device_operator> made_to_be_timed(pattern how, std::size_t at) {
    std::shared_ptr<device_operator> op;
    try {
      op = create(how, at);
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::out_of_memory) throw;
      note_refusal(how, e);
    }
    // A rank may lack memory where others do not. Then no rank may run.
    world_.agree(fmt::format("{}: {} to be timed (not with {}=0)", problem_.operator_name,
                             name_of(how), variable::measure.name),
                 op ? "made" : "refused");
    return op;
  }

  /// bulk_library is the same operator for all ends.
  std::shared_ptr<device_operator> create(pattern how, std::size_t at) {
    if (how != pattern::bulk_library) return parts_.make(how, ends_[at]);
    if (!library_) library_ = parts_.make(how, ends_.back());
    return library_;
  }

  void note_refusal(pattern how, const error& e) {
    const std::string text = fmt::format("; {} is not possible: {}", name_of(how), e.what());
    if (!refused_.insert(how).second) return;
    refusals_ += text;
  }

  /// Adds the operator of an end and, if the end itself was timed, perhaps another operator for
  /// fewer rows.
  void add_operators_of(std::size_t at, std::vector<operator_up_to>& operators_made) {
    if (!timed_.empty() && !timed_.contains(at)) {
      const std::int64_t fewer = rows_below(ends_, at);
      const bool below = fewer > 0 && !timed_below_.empty();
      operators_made.push_back(
          {ends_[at], below ? quickest(at, timed_below_, fewer) : quickest(at, timed_, ends_[at])});
      return;
    }
    const auto whole = first_possible(order_of(timed_, at), at);
    operators_made.push_back({ends_[at], whole});
    if (!timed_below_.contains(at)) return;
    const std::vector<pattern> order = order_of(timed_below_, at);
    if (order.front() == whole->how()) return;
    const auto op = first_possible(order, at);
    if (op->how() != whole->how()) operators_made.push_back({ends_[at] - 1, op});
  }

  /// Times the pattern that is the likeliest by the times of other ends, and then other patterns
  /// while they may be quicker: plans that move data in another way, or have other tiles, differ in
  /// time, too.
  std::shared_ptr<device_operator> quickest(std::size_t at,
                                            const std::map<std::size_t, pattern_times>& timed,
                                            std::int64_t rows) {
    if (!seconds_of_ || choices_[at].likely.size() <= 1)
      return first_possible(order_of(timed, at), at);
    std::shared_ptr<device_operator> best;
    double least = std::numeric_limits<double>::max();
    for (const auto& [how, expected] : times_at(ends_, timed, choices_, at)) {
      if (least <= expected) break;
      const std::shared_ptr<device_operator> op = made_to_be_timed(how, at);
      if (!op) continue;
      const double seconds = seconds_with(*op, rows);
      if (seconds >= least) continue;
      least = seconds;
      best = op;
    }
    return best ? best : first_possible(order_of(timed, at), at);
  }

  [[nodiscard]] std::vector<pattern> order_of(const std::map<std::size_t, pattern_times>& timed,
                                              std::size_t at) const {
    std::vector<pattern> order;
    if (choices_[at].likely.size() > 1) {
      for (const auto& [how, seconds] : times_at(ends_, timed, choices_, at)) order.push_back(how);
    }
    append_others(order, choices_[at].order);
    return order;
  }

  std::shared_ptr<device_operator> first_possible(const std::vector<pattern>& order,
                                                  std::size_t at) {
    for (const pattern how : order) {
      try {
        return create(how, at);
      } catch (const error& e) {
        if (e.code() != errc::unsupported || how == order.back()) throw;
        note_refusal(how, e);
      }
    }
    throw error(errc::internal, "a choice among no patterns");
  }

  [[nodiscard]] std::string reason(const std::vector<operator_up_to>& operators) const {
    const std::string& by_tables = choices_.back().reason;
    if (!varies())
      return timed_.empty()
                 ? by_tables
                 : fmt::format("chosen by timing it here: {}; the timed patterns were {}",
                               sorted_text(timed_.at(0)), by_tables);
    std::string text;
    if (!timed_.empty()) {
      text = fmt::format(
          "chosen by timing {} of {} numbers of rows here, and others in what is then likely:",
          timed_.size(), ends_.size());
      for (const auto& [i, times] : timed_) {
        if (const auto below = timed_below_.find(i); below != timed_below_.end())
          text += fmt::format(" {} rows: {};", rows_below(ends_, i), sorted_text(below->second));
        text += fmt::format(" {} rows: {};", ends_[i], sorted_text(times));
      }
      text += " ";
    }
    // An end has one operator, or two: for its own rows, and for fewer.
    std::vector<operator_up_to> fewer;
    std::vector<operator_up_to> own;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const bool is_pair = i > 0 && operators[i].rows == operators[i - 1].rows + 1 &&
                           std::ranges::count(ends_, operators[i - 1].rows) == 0;
      if (!is_pair) fewer.push_back(operators[i]);
      fewer.back().rows = operators[i].rows;
      own.resize(fewer.size());
      own.back() = operators[i];
    }
    const std::string below = patterns_text(fewer);
    const std::string exactly = patterns_text(own);
    text += below;
    if (exactly != below) text += "with as many rows as a plan has " + exactly;
    return text + (timed_.empty() ? "" : "the timed patterns were ") + by_tables;
  }

  world& world_;
  const tuned_problem& problem_;
  std::span<const std::int64_t> ends_;
  const chosen_parts& parts_;
  bool measures_;
  operator_timer seconds_of_;                         // empty: nothing is timed
  std::vector<choice> choices_;                       // of each end
  std::map<std::size_t, pattern_times> timed_;        // by the place of the end
  std::map<std::size_t, pattern_times> timed_below_;  // as `timed_`, with `rows_below`
  std::shared_ptr<device_operator> library_;
  std::set<pattern> refused_;
  std::string refusals_;
};

}  // namespace

chosen_operators make_chosen(world& w, const tuned_problem& problem,
                             std::span<const std::int64_t> ends, std::string_view device,
                             const chosen_parts& parts, const environment& env) {
  return chooser(w, problem, ends, device, parts, env).make();
}

}  // namespace untax
