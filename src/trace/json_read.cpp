#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/trace/json.hpp>

#include "json_format.hpp"
#include "src/core/json.hpp"

namespace untax {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::invalid_argument, "trace: " + what);
}

std::uint64_t nanoseconds(const json& value) {
  const double micros = value.get<double>();
  if (!(micros >= 0) || micros > 9e12) refuse(fmt::format("{} is not a time", shown(value)));
  return static_cast<std::uint64_t>(std::llround(micros * 1000));
}

std::uint64_t from_hex(const json& value) {
  const auto& text = value.get_ref<const std::string&>();
  std::size_t used = 0;
  const std::uint64_t number = text.empty() ? 0 : std::stoull(text, &used, 16);
  if (used != text.size() || text.size() != 16) refuse(fmt::format("\"{}\" is not an id", text));
  return number;
}

trace_kind kind_from(const std::string& name) {
  for (const auto kind : {trace_kind::run, trace_kind::stage, trace_kind::kernel,
                          trace_kind::action, trace_kind::wait, trace_kind::signal}) {
    if (name == name_of(kind)) return kind;
  }
  refuse(fmt::format("there is no category \"{}\"", name));
}

/// A whole number from `least` to `most`; others are refused.
int small(const json& value, int least, int most) {
  const auto number = value.get<std::int64_t>();
  if (!value.is_number_integer() || number < least || number > most)
    refuse(fmt::format("{} should be a whole number from {} to {}", shown(value), least, most));
  return static_cast<int>(number);
}

class reader {
 public:
  trace_record read(const json& in) {
    read_operators(in.at("otherData"));
    for (const json& event : in.at("traceEvents")) read_event(event);
    for (const auto& [id, arrow] : arrows_) {
      if (arrow.begins != 1 || arrow.ends != 1)
        refuse(fmt::format("arrow {} begins {} times and ends {} times", id, arrow.begins,
                           arrow.ends));
      if (arrow.begin > arrow.end) refuse(fmt::format("arrow {} ends before it begins", id));
    }
    for (traced_operator& op : record_.operators) {
      put_in_order(op, op.calls);
      for (auto& spans : op.workers) put_in_order(op, spans);
    }
    return std::move(record_);
  }

 private:
  struct arrow_ends {
    int begins = 0;
    int ends = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  void read_operators(const json& data) {
    if (data.at("format") != trace_format::name ||
        data.at("format_version") != trace_format::number) {
      refuse(fmt::format("format is {} {}; should be \"{}\" {}", shown(data.at("format")),
                         shown(data.at("format_version")), trace_format::name,
                         trace_format::number));
    }
    for (const json& object : data.at("operators")) {
      traced_operator op;
      op.id = from_hex(object.at("id"));
      op.world = from_hex(object.at("world"));
      op.name = object.at("name");
      op.label = object.at("label");
      op.ranks = small(object.at("ranks"), 1, trace_format::processes_of_world - 1);
      op.rank = small(object.at("rank"), 0, op.ranks - 1);
      for (const traced_operator& other : record_.operators) {
        if (other.id == op.id && other.ranks != op.ranks)
          refuse(fmt::format("{} has {} ranks, and {} at another rank", op.name, op.ranks,
                             other.ranks));
      }
      op.workers.resize(static_cast<std::size_t>(small(object.at("workers"), 0, 1 << 16)));
      op.lost = object.at("lost");
      for (const json& k : object.at("kernels"))
        op.kernels.push_back({k.at("name"), k.at("stage"), k.at("workers")});
      if (object.contains("worker_names")) {
        for (const json& worker : object.at("worker_names"))
          op.names.push_back({worker.at("name"), worker.at("block"), worker.at("cluster")});
        if (op.names.size() != op.workers.size())
          refuse(fmt::format("{} workers have {} names", op.workers.size(), op.names.size()));
      }
      record_.operators.push_back(std::move(op));
    }
  }

  void read_event(const json& event) {
    const std::string phase = event.at("ph");
    if (phase == "M") {
      if (event.at("name") != "process_name" && event.at("name") != "thread_name")
        refuse("the name of a track is not known: " + event.dump());
      (void)event.at("args").at("name").get_ref<const std::string&>();
    } else if (phase == "s" || phase == "f") {
      arrow_ends& arrow = arrows_[event.at("id").get<std::uint64_t>()];
      ++(phase == "s" ? arrow.begins : arrow.ends);
      (phase == "s" ? arrow.begin : arrow.end) = nanoseconds(event.at("ts"));
    } else if (phase == "X") {
      read_span(event);
    } else {
      refuse(fmt::format("there is no phase \"{}\"", phase));
    }
  }

  /// The thread of an event: 0 for the caller, else the worker's number plus 1.
  static int thread_of(const traced_operator& op, const json& event) {
    const int workers = static_cast<int>(op.workers.size());
    if (op.names.empty()) return small(event.at("tid"), 0, workers);
    const json& arguments = event.at("args");
    return arguments.contains("worker") ? small(arguments.at("worker"), 0, workers - 1) + 1
                                        : small(event.at("tid"), 0, 0);
  }

  void read_span(const json& event) {
    const json& arguments = event.at("args");
    traced_operator& op = record_.operators.at(static_cast<std::size_t>(
        small(arguments.at("op"), 0, static_cast<int>(record_.operators.size()) - 1)));
    if ((event.at("pid").get<int>() - 1) % trace_format::processes_of_world != op.rank)
      refuse("an event belongs to another rank: " + event.dump());
    const int thread = thread_of(op, event);
    trace_span span;
    span.kind = kind_from(event.at("cat"));
    span.begin = nanoseconds(event.at("ts"));
    span.end =
        span.kind == trace_kind::signal ? span.begin : span.begin + nanoseconds(event.at("dur"));
    span.number = arguments.at("number");
    if (span.number < 0) refuse("the number of an event is below 0: " + event.dump());
    const bool of_caller = span.kind == trace_kind::run || span.kind == trace_kind::stage;
    if (of_caller != (thread == 0)) refuse("an event belongs to another thread: " + event.dump());
    if (of_caller) span.count = small(arguments.at("count"), 1, 1 << 16);
    if (span.kind == trace_kind::action)
      span.what = small(arguments.at("action"), 0, static_cast<int>(action::normalise));
    if (span.kind == trace_kind::wait || span.kind == trace_kind::signal) {
      span.what = small(arguments.at("verb"), 0, static_cast<int>(channel_verb::retire));
      span.owner = small(arguments.at("owner"), 0, op.ranks - 1);
      span.counter = arguments.at("counter");
      span.count = small(arguments.at("count"), 1, 255);
    }
    if (span.kind == trace_kind::wait) {
      span.peer = small(arguments.at("peer"), -1, op.ranks - 1);
      span.room = arguments.at("room");
    }
    (thread == 0 ? op.calls : op.workers[static_cast<std::size_t>(thread) - 1]).push_back(span);
  }

  /// Sorts spans by ends. They are given by begins, and have to be nested or disjoint.
  static void put_in_order(const traced_operator& op, std::vector<trace_span>& spans) {
    std::vector<trace_span> done;
    std::vector<trace_span> open;
    const auto close_until = [&](std::uint64_t time) {
      while (!open.empty() && open.back().end <= time) {
        done.push_back(open.back());
        open.pop_back();
      }
    };
    std::uint64_t before = 0;
    for (const trace_span& span : spans) {
      if (span.begin < before)
        refuse(fmt::format("{}, rank {}: events are not in order", op.name, op.rank));
      before = span.begin;
      if (span.kind == trace_kind::signal) {
        close_until(span.begin);
        done.push_back(span);
        continue;
      }
      close_until(span.begin);
      if (!open.empty() && open.back().end < span.end)
        refuse(
            fmt::format("{}, rank {}: two events overlap at {} ns", op.name, op.rank, span.begin));
      open.push_back(span);
    }
    close_until(UINT64_MAX);
    spans = std::move(done);
  }

  trace_record record_;
  std::map<std::uint64_t, arrow_ends> arrows_;
};

}  // namespace

trace_record trace_from_json(std::string_view text) {
  try {
    return reader().read(parse_json(text, "trace", {.bytes = trace_format::most_bytes}));
  } catch (const json::exception& wrong) {
    refuse(fmt::format("untax did not write this: {}", wrong.what()));
  } catch (const std::logic_error& wrong) {
    refuse(fmt::format("untax did not write this: {}", wrong.what()));
  }
}

}  // namespace untax
