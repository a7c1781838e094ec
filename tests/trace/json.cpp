// Traces as JSON: what is written is read back, and what is damaged is refused.
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <untax/core/error.hpp>
#include <untax/trace/json.hpp>

#include "support.hpp"

namespace untax::testing {
namespace {

using nlohmann::json;

const trace_record& sample() {
  static const trace_record record =
      traced_runs("gemm_reduce_scatter", traced_way(pattern::fused_specialized), 3, 4);
  return record;
}

TEST(trace_json, every_pattern_survives_writing_and_reading) {
  for (const char* name : {"all_gather_gemm", "gemm_all_reduce"}) {
    for (const pattern how : traced_patterns()) {
      const trace_record record = traced_runs(name, traced_way(how), 3, 3);
      ASSERT_EQ(record.operators.size(), 3U);
      EXPECT_EQ(record.operators.front().label, name_of(how));
      int workers = 0;
      for (const trace_kernel& kernel : record.operators.front().kernels) {
        EXPECT_FALSE(kernel.name.empty());
        workers += kernel.workers;
      }
      EXPECT_GT(workers, 0) << "kernels have names, and workers";
      EXPECT_EQ(trace_from_json(to_trace_json(record)), record) << name << " " << name_of(how);
    }
  }
}

TEST(trace_json, arrows_go_from_each_signal_to_its_wait) {
  const json written = json::parse(to_trace_json(sample()));
  std::map<int, json> begins;
  int arrows = 0;
  int waits = 0;
  for (const json& event : written.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("cat") == "wait") ++waits;
    if (event.at("ph") == "s") begins[event.at("id")] = event;
    if (event.at("ph") == "f") ++arrows;
  }
  EXPECT_GT(waits, 0);
  EXPECT_EQ(begins.size(), static_cast<std::size_t>(arrows));
  // Clocks of two cores may differ by more than a flight that is very short.
  EXPECT_GE(arrows, waits * 9 / 10);
}

/// Ends one event halfway through an event that lies within it. The pair is looked up: where in
/// a kernel's time its work lies depends on the scheduler.
void end_within_the_next(json& events) {
  json* outer = nullptr;
  for (json& event : events) {
    if (event.at("ph") != "X" || event.at("cat") == "signal") continue;
    const double begin = event.at("ts");
    const double length = event.at("dur");
    if (outer != nullptr && (*outer)["args"]["op"] == event["args"]["op"] &&
        (*outer)["tid"] == event["tid"] && length > 0.01 &&
        begin + length <= (*outer)["ts"].get<double>() + (*outer)["dur"].get<double>()) {
      (*outer)["dur"] = begin + length / 2 - (*outer)["ts"].get<double>();
      return;
    }
    outer = &event;
  }
  FAIL() << "no event lies within another";
}

TEST(trace_json, damaged_files_are_refused) {
  const json whole = json::parse(to_trace_json(sample()));
  const auto first_of = [&](json& in, const char* phase, const char* category) -> json& {
    for (json& event : in.at("traceEvents")) {
      if (event.at("ph") == phase && event.value("cat", "") == category) return event;
    }
    throw std::runtime_error("no such event");
  };
  const auto refused = [&](const char* why, const std::function<void(json&)>& damage) {
    json damaged = whole;
    damage(damaged);
    EXPECT_THROW((void)trace_from_json(damaged.dump()), error) << why;
  };
  EXPECT_NO_THROW((void)trace_from_json(whole.dump()));
  refused("another format", [](json& d) { d["otherData"]["format"] = "x"; });
  refused("no operators", [](json& d) { d["otherData"].erase("operators"); });
  refused("a phase that is none", [&](json& d) { first_of(d, "X", "wait")["ph"] = "Y"; });
  refused("a category that is none", [&](json& d) { first_of(d, "X", "wait")["cat"] = "rest"; });
  refused("another rank", [&](json& d) { first_of(d, "X", "wait")["pid"] = 77; });
  refused("an operator that is none", [&](json& d) { first_of(d, "X", "wait")["args"]["op"] = 3; });
  refused("half an arrow", [&](json& d) { first_of(d, "f", "signal")["id"] = 1 << 20; });
  refused("an arrow that ends before it begins",
          [&](json& d) { first_of(d, "f", "signal")["ts"] = 0; });
  refused("a length that is negative", [&](json& d) { first_of(d, "X", "kernel")["dur"] = -1; });
  refused("two events that overlap", [](json& d) { end_within_the_next(d.at("traceEvents")); });
  refused("ranks that differ", [](json& d) { d["otherData"]["operators"][0]["ranks"] = 60; });
  refused("a kernel of no number",
          [&](json& d) { first_of(d, "X", "kernel")["args"]["number"] = -1; });
  refused("events out of order", [&](json& d) { first_of(d, "X", "kernel")["ts"] = 8e12; });
  EXPECT_THROW((void)trace_from_json("[]"), error);
  EXPECT_THROW((void)trace_from_json("{"), error);
}

}  // namespace
}  // namespace untax::testing
