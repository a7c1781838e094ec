#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/version.hpp>
#include <untax/flow/fault_plan.hpp>
#include <untax/trace/json.hpp>

#include "json_format.hpp"
#include "match.hpp"

namespace untax {
namespace {

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Exact microseconds, with three decimals.
std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string name_of_span(const traced_operator& op, const trace_span& span) {
  switch (span.kind) {
    case trace_kind::run:
      return op.label.empty() ? op.name : fmt::format("{}, {}", op.name, op.label);
    case trace_kind::stage:
      return fmt::format("stage {}", span.number);
    case trace_kind::kernel:
      // A run of another size may have more kernels than the largest run, whose names are in the
      // record.
      if (span.number >= static_cast<std::int64_t>(op.kernels.size()))
        return fmt::format("kernel {}", span.number);
      return op.kernels[static_cast<std::size_t>(span.number)].name;
    case trace_kind::action:
      return std::string(name_of(static_cast<action>(span.what)));
    case trace_kind::wait:
    case trace_kind::signal:
      break;
  }
  return std::string(name_of(static_cast<channel_verb>(span.what)));
}

class writer {
 public:
  explicit writer(const trace_record& record) : record_(record), signals_(record) {}

  std::string write() {
    out_ = "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[";
    // All tracks first, since arrows begin at operators that come later.
    for (const traced_operator& op : record_.operators) name_threads(op);
    for (std::size_t o = 0; o < record_.operators.size(); ++o) {
      const traced_operator& op = record_.operators[o];
      thread(o, 0, op.calls);
      for (std::size_t w = 0; w < op.workers.size(); ++w)
        thread(o, track_of(op, w), op.workers[w], static_cast<int>(w));
    }
    out_ += fmt::format("\n],\n\"otherData\":{}}}\n", other_data());
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  int process_of(const traced_operator& op) {
    const auto [it, added] = worlds_.try_emplace(op.world, static_cast<int>(worlds_.size()));
    return it->second * trace_format::processes_of_world + op.rank + 1;
  }

  void name_threads(const traced_operator& op) {
    const int process = process_of(op);
    int& named = named_[process];
    if (named == 0) {
      event(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", process,
            in_quotes(fmt::format("rank {} of {}", op.rank, op.ranks)));
    }
    const int last = op.names.empty() ? static_cast<int>(op.workers.size()) : 0;
    for (; named <= last; ++named) {
      event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process,
            named, in_quotes(named == 0 ? "caller" : fmt::format("worker {}", named - 1)));
    }
    for (const trace_worker& worker : op.names) {
      const auto [it, added] = tracks_.try_emplace(
          {process, worker.name}, trace_format::first_named + static_cast<int>(tracks_.size()));
      if (!added) continue;
      event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process,
            it->second, in_quotes(worker.name));
    }
  }
  /// Operators share the tracks of workers that have the same name, or number.
  int track_of(const traced_operator& op, std::size_t worker) {
    if (op.names.empty()) return static_cast<int>(worker) + 1;
    return tracks_.at({process_of(op), op.names[worker].name});
  }

  /// Writes the spans of one thread. `worker` is -1 for the caller.
  void thread(std::size_t o, int thread_number, const std::vector<trace_span>& spans,
              int worker = -1) {
    // Sorted by begins; of those that begin at the same time, enclosing ones come first.
    std::vector<std::pair<const trace_span*, std::size_t>> order;
    for (std::size_t i = 0; i < spans.size(); ++i) order.emplace_back(&spans[i], i);
    std::ranges::sort(order, [](const auto& a, const auto& b) {
      const auto key = [](const auto& s) {
        const bool lasts = s.first->end > s.first->begin;
        return std::tuple(s.first->begin, ~s.first->end, lasts ? ~s.second : s.second);
      };
      return key(a) < key(b);
    });
    const traced_operator& op = record_.operators[o];
    const int process = process_of(op);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const trace_span& span = *order[i].first;
      // A signal has no duration, but an arrow has to begin at a span that has one.
      const bool room = i + 1 == order.size() || order[i + 1].first->begin > span.begin;
      const std::uint64_t length =
          span.kind == trace_kind::signal ? (room ? 1 : 0) : span.end - span.begin;
      event(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
            name_of(span.kind), in_quotes(name_of_span(op, span)), process, thread_number,
            microseconds(span.begin), microseconds(length), arguments(o, span, worker));
      if (span.kind == trace_kind::wait) arrow(op, span, process, thread_number);
    }
  }

  std::string arguments(std::size_t o, const trace_span& span, int worker) const {
    std::string text = fmt::format(R"("op":{},"number":{})", o, span.number);
    const auto out = std::back_inserter(text);
    if (worker >= 0 && !record_.operators[o].names.empty())
      fmt::format_to(out, R"(,"worker":{})", worker);
    if (span.kind == trace_kind::run || span.kind == trace_kind::stage)
      fmt::format_to(out, R"(,"count":{})", span.count);
    if (span.kind == trace_kind::action) fmt::format_to(out, R"(,"action":{})", span.what);
    if (span.kind != trace_kind::wait && span.kind != trace_kind::signal) return text;
    fmt::format_to(out, R"(,"verb":{},"owner":{},"counter":{},"count":{})", span.what, span.owner,
                   span.counter, span.count);
    if (span.kind == trace_kind::wait) {
      const wait_parts parts = parts_of(signals_, record_.operators[o], span);
      fmt::format_to(out, R"(,"peer":{},"room":{},"late_peer_us":{},"in_flight_us":{})", span.peer,
                     span.room, microseconds(parts.late), microseconds(parts.in_flight));
    }
    return text;
  }

  /// Writes an arrow from a signal to the wait that it ended.
  void arrow(const traced_operator& op, const trace_span& wait, int process, int thread_number) {
    const auto result = signals_.signal_of(op, wait);
    if (!result) return;
    const trace_span& signal = signals_.at(*result);
    const std::uint64_t end =
        std::max({wait.end > wait.begin ? wait.end - 1 : wait.end, signal.begin});
    if (end > wait.end) return;  // clocks of two cores may differ by more than the signal's flight
    ++arrows_;
    event(R"({{"ph":"s","cat":"signal","name":"signal","id":{},"pid":{},"tid":{},"ts":{}}})",
          arrows_, process_of(record_.operators[result->op]),
          track_of(record_.operators[result->op], result->worker), microseconds(signal.begin));
    event(
        R"({{"ph":"f","bp":"e","cat":"signal","name":"signal","id":{},"pid":{},"tid":{},"ts":{}}})",
        arrows_, process, thread_number, microseconds(end));
  }

  [[nodiscard]] std::string other_data() const {
    nlohmann::ordered_json data;
    data["format"] = trace_format::name;
    data["format_version"] = trace_format::number;
    data["untax"] = version;
    data["events"] = record_.events();
    data["lost"] = record_.lost();
    data["operators"] = nlohmann::ordered_json::array();
    for (const traced_operator& op : record_.operators) {
      nlohmann::ordered_json object;
      // Ids are written as texts: numbers do not keep 64 bits in all readers of JSON.
      object["id"] = fmt::format("{:016x}", op.id);
      object["world"] = fmt::format("{:016x}", op.world);
      object["name"] = op.name;
      object["label"] = op.label;
      object["rank"] = op.rank;
      object["ranks"] = op.ranks;
      object["workers"] = op.workers.size();
      object["lost"] = op.lost;
      if (!op.names.empty()) {
        object["worker_names"] = nlohmann::ordered_json::array();
        for (const trace_worker& worker : op.names)
          object["worker_names"].push_back(
              {{"name", worker.name}, {"block", worker.block}, {"cluster", worker.cluster}});
      }
      object["kernels"] = nlohmann::ordered_json::array();
      for (const trace_kernel& k : op.kernels)
        object["kernels"].push_back({{"name", k.name}, {"stage", k.stage}, {"workers", k.workers}});
      data["operators"].push_back(std::move(object));
    }
    return data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  const trace_record& record_;
  signal_index signals_;
  std::string out_;
  bool first_ = true;
  std::map<std::uint64_t, int> worlds_;
  std::map<int, int> named_;                           ///< numbered threads with a name, by process
  std::map<std::pair<int, std::string>, int> tracks_;  ///< of named workers, by process and name
  std::uint64_t arrows_ = 0;
};

}  // namespace

std::string to_trace_json(const trace_record& record) { return writer(record).write(); }

}  // namespace untax
