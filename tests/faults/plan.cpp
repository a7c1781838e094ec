// The text of faults, and what a plan does with single sites.
#include <untax/flow/fault_plan.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include <untax/core/error.hpp>

namespace untax::testing {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(fault::parse(text));
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.what();
  }
  return "accepted";
}

TEST(fault_text, is_read_and_written) {
  for (const char* text :
       {"drop:rank=1,verb=publish,nth=3", "delay:rank=0,nth=1,ms=20", "duplicate:rank=7,nth=2",
        "late_duplicate:rank=1,verb=retire,epoch=2,nth=1", "kill:rank=0,nth=5",
        "stall:rank=2,verb=reserve,epoch=1,kernel=0,worker=3,step=14,nth=1,ms=300",
        "exit:rank=3,nth=1,code=4"}) {
    EXPECT_EQ(fault::parse(text).text(), text);
  }
  const fault f = fault::parse("kill:rank=2");
  EXPECT_EQ(f.nth, 1U);
  EXPECT_FALSE(f.verb.has_value());
}

TEST(fault_text, invalid_text_is_refused_with_the_valid_values) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "has to start with one of drop, delay"},
      {"drop", "has to start with one of drop, delay"},
      {"burn:rank=1", "has to start with one of drop, delay"},
      {"drop:", "\"\" is not a field"},
      {"drop:nth=2", "has to say which rank, as rank=0"},
      {"drop:rank=1,", "\"\" is not a field"},
      {"drop:rank", "\"rank\" is not a field"},
      {"drop:rank=", "rank is \"\"; it has to be a whole number between 0 and 2147483647"},
      {"drop:rank=-1", "rank is \"-1\"; it has to be a whole number"},
      {"drop:rank=1x", "rank is \"1x\""},
      {"drop:rank=1,rank=2", "rank comes twice"},
      {"drop:rank=1,nth=0", "nth is \"0\"; it has to be a whole number between 1 and"},
      {"drop:rank=1,ms=3", "drop has no field \"ms\"; it has rank, verb, epoch"},
      {"stall:rank=1,code=3", "stall has no field \"code\"; it has rank, verb, epoch"},
      {"exit:rank=1,code=256", "code is \"256\"; it has to be a whole number between 0 and 255"},
      {"drop:rank=1,verb=reserve", "for drop it can be publish or retire, which are signals"},
      {"stall:rank=1,verb=sleep", "for stall it can be reserve, acquire, publish or retire"},
  };
  for (const auto& [text, why] : bad) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find("fault \"" + text + "\": "), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_NE(said.find("for example \"drop:rank=1,verb=publish,nth=3\""), std::string::npos);
  }
}

TEST(fault_text, of_a_site_has_all_its_fields) {
  const fault_site where{
      .rank = 2, .kernel = 1, .worker = 3, .step = 14, .epoch = 5, .verb = channel_verb::retire};
  EXPECT_EQ(fault::at(fault_kind::drop, where).text(),
            "drop:rank=2,verb=retire,epoch=5,kernel=1,worker=3,step=14,nth=1");
}

TEST(fault_text, random_text_is_read_or_refused) {
  const std::string letters = "drop:stall,rank=0123verb=publish,ms=\t\xff";
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = fault::parse("stall:rank=2,nth=4,ms=9").text();
    for (int change = 0; change < 3; ++change)
      text[random() % text.size()] = letters[random() % letters.size()];
    if (refusal(text) != "accepted") continue;
    EXPECT_EQ(refusal(fault::parse(text).text()), "accepted") << text;
  }
}

fault_site site(int rank, channel_verb verb, std::uint64_t epoch = 1, int worker = 0) {
  return {.rank = rank, .kernel = 0, .worker = worker, .step = 0, .epoch = epoch, .verb = verb};
}

room use(std::uint64_t number, int ready = 4) {
  return {.producer = 0, .consumer = 1, .number = 3, .ready = ready, .free = 9, .use = number};
}

/// Records the uses that reach a counter after a plan has changed a signal.
struct counter {
  std::vector<std::uint64_t> uses;

  void signal(fault_plan& plan, const fault_site& where, const room& r) {
    plan.before(where);
    plan.signal(where, r, [this, u = r.use] { uses.push_back(u); });
  }
};

TEST(fault_plan, counts_the_sites_that_match) {
  fault_plan plan(fault::parse("drop:rank=1,verb=publish,epoch=2,nth=2"));
  counter c;
  c.signal(plan, site(1, channel_verb::publish, 1), use(1));
  c.signal(plan, site(1, channel_verb::publish, 2), use(2));
  c.signal(plan, site(0, channel_verb::publish, 2), use(3));
  c.signal(plan, site(1, channel_verb::retire, 2), use(4));
  EXPECT_FALSE(plan.struck());
  EXPECT_FALSE(plan.target().has_value());
  c.signal(plan, site(1, channel_verb::publish, 2), use(5));
  EXPECT_TRUE(plan.struck());
  EXPECT_EQ(plan.target()->use, 5U);
  c.signal(plan, site(1, channel_verb::publish, 2), use(6));
  EXPECT_EQ(c.uses, (std::vector<std::uint64_t>{1, 2, 3, 4, 6}));
}

TEST(fault_plan, repeats_a_signal_at_once_or_after_the_next_one_of_its_counter) {
  fault_plan at_once(fault::parse("duplicate:rank=1,nth=2"));
  counter c;
  for (const std::uint64_t u : {1, 2, 3}) c.signal(at_once, site(1, channel_verb::publish), use(u));
  EXPECT_EQ(c.uses, (std::vector<std::uint64_t>{1, 2, 2, 3}));

  fault_plan late(fault::parse("late_duplicate:rank=1"));
  counter d;
  d.signal(late, site(1, channel_verb::publish), use(1));
  d.signal(late, site(1, channel_verb::publish), use(2, 5));
  d.signal(late, site(1, channel_verb::retire), use(2));
  d.signal(late, site(1, channel_verb::publish, 1, 3), use(2));
  EXPECT_FALSE(late.struck()) << "all of these go to other counters";
  d.signal(late, site(1, channel_verb::publish), use(2));
  EXPECT_TRUE(late.struck());
  EXPECT_EQ(d.uses, (std::vector<std::uint64_t>{1, 2, 2, 2, 2, 1}));

  // The signal that a room is free has a counter of its own.
  fault_plan freed(fault::parse("late_duplicate:rank=1,verb=retire"));
  counter e;
  room other = use(2);
  other.free = 8;
  e.signal(freed, site(1, channel_verb::retire), use(1));
  e.signal(freed, site(1, channel_verb::retire), other);
  EXPECT_FALSE(freed.struck());
  e.signal(freed, site(1, channel_verb::retire), use(2, 5));
  EXPECT_TRUE(freed.struck()) << "whatever it says of readiness";
  EXPECT_EQ(e.uses, (std::vector<std::uint64_t>{1, 2, 2, 1}));
}

TEST(fault_plan, delays_a_signal_without_blocking_the_worker) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  std::atomic<bool> raised{false};
  {
    fault_plan plan(fault::parse("delay:rank=0,ms=60"));
    plan.signal(site(0, channel_verb::retire), use(1), [&] { raised = true; });
    EXPECT_FALSE(raised) << "unless this line took 60 ms";
  }
  EXPECT_TRUE(raised) << "the end of the plan waits for it";
  EXPECT_GE(clock::now() - begin, std::chrono::milliseconds(60));
}

TEST(fault_plan, stalls_once_and_reports_the_stall_first) {
  using clock = std::chrono::steady_clock;
  int told = 0;
  fault_plan plan(fault::parse("stall:rank=0,verb=acquire,ms=40"),
                  [&](const fault_site& s) { told += s.verb == channel_verb::acquire ? 1 : 10; });
  const auto begin = clock::now();
  plan.before(site(0, channel_verb::reserve));
  plan.before(site(1, channel_verb::acquire));
  EXPECT_EQ(told, 0);
  plan.before(site(0, channel_verb::acquire));
  EXPECT_EQ(told, 1);
  EXPECT_GE(clock::now() - begin, std::chrono::milliseconds(40));
  plan.before(site(0, channel_verb::acquire));
  EXPECT_EQ(told, 1);
}

TEST(fault_plan, strikes_once_among_many_workers) {
  fault_plan plan(fault::parse("drop:rank=0,nth=500"));
  std::atomic<int> raised{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&, w] {
      for (int i = 0; i < 250; ++i)
        plan.signal(site(0, channel_verb::publish, 1, w), use(1), [&] { ++raised; });
    });
  }
  for (std::thread& t : workers) t.join();
  EXPECT_EQ(raised, 999);
}

TEST(fault_plan_death, kills_or_ends_the_process) {
  EXPECT_EXIT(fault_plan(fault::parse("kill:rank=0")).before(site(0, channel_verb::acquire)),
              ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(fault_plan(fault::parse("exit:rank=0,code=9")).before(site(0, channel_verb::acquire)),
              ::testing::ExitedWithCode(9), "");
}

}  // namespace
}  // namespace untax::testing
