// Rings of events, and what sessions make of them.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/trace/json.hpp>

#include "engines/host/trace.hpp"
#include "src/trace/trace_file.hpp"
#include "support.hpp"

namespace untax::testing {
namespace {

TEST(trace_ring, a_word_gives_back_its_fields) {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  for (int i = 0; i < 1000; ++i) {
    trace_mark mark;
    mark.kind = static_cast<trace_kind>(below(6));
    mark.end = below(2) == 1;
    mark.what = static_cast<int>(below(16));
    mark.owner = static_cast<int>(below(256));
    mark.readers = static_cast<int>(below(256));
    if (mark.counts()) mark.counter = below(1 << 24);
    mark.number = below(mark.counts() ? 1 << 16 : std::int64_t{1} << 40);
    const trace_mark back = trace_mark::unpacked(mark.packed());
    ASSERT_EQ(back.kind, mark.kind);
    ASSERT_EQ(back.end, mark.end);
    ASSERT_EQ(back.what, mark.what);
    ASSERT_EQ(back.owner, mark.owner);
    ASSERT_EQ(back.readers, mark.readers);
    ASSERT_EQ(back.counter, mark.counter);
    ASSERT_EQ(back.number, mark.number);
  }
}

TEST(trace_ring, the_oldest_events_are_dropped_and_counted) {
  trace_ring ring(5);
  for (int i = 0; i < 4; ++i) {
    const trace_scope run(&ring, {.kind = trace_kind::run, .number = i});
  }
  EXPECT_EQ(ring.lost(), 3U);
  const auto spans = spans_of(ring.events());
  ASSERT_EQ(spans.size(), 2U);  // the end of run 1 has lost its beginning
  EXPECT_EQ(spans[0].number, 2);
  EXPECT_EQ(spans[1].number, 3);
  EXPECT_LE(spans[0].end, spans[1].begin);
}

// A room without a reserve has no counter that a retire could raise.
TEST(trace_ring, signals_that_raise_nothing_are_not_noted) {
  trace_ring ring(8);
  room target{.producer = 1, .consumer = 2, .number = 3, .ready = 4, .free = -1, .use = 5};
  host::note_signal(ring, channel_verb::retire, target, 1);
  EXPECT_TRUE(ring.events().empty());
  host::note_signal(ring, channel_verb::publish, target, 0);
  target.free = 6;
  host::note_signal(ring, channel_verb::retire, target, 1);
  const auto events = ring.events();
  ASSERT_EQ(events.size(), 2U);
  const trace_mark ready = trace_mark::unpacked(events[0].word);
  const trace_mark free = trace_mark::unpacked(events[1].word);
  EXPECT_EQ(ready.counter, 4);
  EXPECT_EQ(ready.owner, 2);
  EXPECT_EQ(free.counter, 7);
  EXPECT_EQ(free.owner, 1);
  EXPECT_EQ(free.number, 5);
}

TEST(trace_session, records_nothing_by_default) {
  EXPECT_FALSE(is_tracing());
  EXPECT_THROW((void)stop_trace(), error);
  const trace_record record =
      traced_runs("all_gather_gemm", traced_way(pattern::fused_sequential), 2, 2);
  EXPECT_EQ(record.operators.size(), 2U);
  EXPECT_EQ(record.lost(), 0U);
  EXPECT_FALSE(is_tracing());
}

TEST(trace_session, a_second_session_is_refused) {
  start_trace({});
  EXPECT_THROW(start_trace({}), error);
  EXPECT_TRUE(stop_trace().operators.empty());
  try {
    start_trace({.path = "/nowhere/trace.json"});
    FAIL() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("/nowhere/trace.json"), std::string::npos);
  }
}

TEST(trace_session, a_write_to_a_full_disk_is_an_internal_error) {
  start_trace({.path = "/dev/full"});
  try {
    (void)stop_trace();
    FAIL() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::internal);
    EXPECT_NE(std::string(e.what()).find("/dev/full"), std::string::npos);
  }
}

TEST(trace_session, a_session_without_operators_does_not_write_its_file) {
  const std::string path = ::testing::TempDir() + "untax_kept_trace.json";
  std::ofstream(path) << "kept";
  start_trace({.path = path});
  end_trace();
  end_trace();  // there is none
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "kept");
  EXPECT_FALSE(is_tracing());
  std::filesystem::remove(path);
}

TEST(trace_session, operators_made_in_a_pause_are_not_recorded) {
  start_trace({});
  EXPECT_TRUE(is_tracing());
  {
    const trace_pause outer;
    const trace_pause inner;
    EXPECT_FALSE(is_tracing());
    std::thread([] { EXPECT_TRUE(is_tracing()); }).join();
    run_threads(1, [](world& w) {
      const trace_pause of_this_rank;
      workload load(w, operator_named("all_gather_gemm"), traced_problem, {}, 1);
      load.run();
    });
  }
  EXPECT_TRUE(is_tracing());
  EXPECT_TRUE(stop_trace().operators.empty());
}

TEST(trace_session, labels_hold_for_their_scope) {
  EXPECT_EQ(trace_label::current(), "");
  const trace_label outer("outer");
  {
    const trace_label inner("inner");
    EXPECT_EQ(trace_label::current(), "inner");
  }
  EXPECT_EQ(trace_label::current(), "outer");
}

TEST(trace_session, events_that_do_not_fit_are_counted_and_the_rest_is_whole) {
  const trace_record record = traced_runs(
      "gemm_reduce_scatter", traced_way(pattern::fused_specialized), 2, 50, {}, traced_problem, 64);
  EXPECT_GT(record.lost(), 0U);
  EXPECT_NE(record.summary().find("did not fit"), std::string::npos) << record.summary();
  EXPECT_EQ(trace_from_json(to_trace_json(record)), record);
}

}  // namespace
}  // namespace untax::testing
