// Collectives in worlds of GPUs, up to their kernels.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/untax.hpp>

#include "tests/errors.hpp"
#include "tests/pretended/kernels.hpp"

namespace {

using namespace untax;
using pretended::lines;
using pretended::noted;
using pretended::on_gpus;
using pretended::text_of;
using pretended::told;
using untax_test::error_of;
using untax_test::expect_error;

constexpr std::int64_t count = 96;

lines of_kernels(lines calls) {
  std::erase_if(calls, [](const std::string& c) { return c.starts_with("allocate"); });
  return calls;
}

/// The calls that a collective makes when it is planned.
template <class Operator, class Problem>
std::string made(world& w, const Problem& problem, const collective_options& options = {}) {
  (void)noted();
  std::uint64_t from = w.state().posted(w.rank());
  const Operator op(w, problem, options);
  const lines calls = told(w, from);
  EXPECT_GE(calls.size(), 2U);
  EXPECT_TRUE(calls.back().ends_with(": made")) << calls.back();
  const lines noted_calls = noted();
  EXPECT_EQ(noted_calls.size(), 1U);
  return noted_calls.front();
}

TEST(gpu_collectives_without_kernels, launch_the_kernel_of_their_problem) {
  on_gpus(2, [](world& w) {
    const auto expect = [](const std::string& is, const std::string& should) {
      EXPECT_EQ(is.find(should), 0U) << is << "\nhas to begin with " << should;
    };
    expect(made<all_gather>(w, all_gather_problem{count}), "make all_gather: exchange of bf16");
    expect(made<all_to_all>(w, all_to_all_problem{count, dtype::f32}),
           "make all_to_all: exchange of fp32");
    expect(made<all_to_all>(w, all_to_all_problem{0, dtype::f32, {1, 2, 3, 4}}),
           "make all_to_all: exchange of fp32");
    expect(made<reduce_scatter>(w, reduce_scatter_problem{count, dtype::f16, reduction::max}),
           fmt::format("make reduce_scatter: reduction of 96 fp16 by {}, owner",
                       name_of(reduction::max)));
    expect(made<all_reduce>(w, all_reduce_problem{count}),
           "make all_reduce: reduction of 96 bf16 by sum, everywhere");
    expect(made<broadcast>(w, broadcast_problem{count, dtype::bf16, 1}, {.phases = 1}),
           "make broadcast: exchange of bf16");
    expect(made<broadcast>(w, broadcast_problem{count, dtype::bf16, 1}, {.phases = 2}),
           "make broadcast: relay of 96 bf16 from 1");
  });
}

TEST(gpu_collectives_without_kernels, run_kernels_on_any_stream) {
  on_gpus(2, [](world& w) {
    std::vector<float> in(count), out(count);
    all_reduce op(w, {.count = count, .type = dtype::f32});
    const std::string name = noted().front().substr(std::string("make all_reduce: ").size());
    std::uint64_t from = w.state().posted(w.rank());
    const auto runs = [&](const char* stream) {
      return lines{fmt::format("{} runs {} {}, 0 apart, on {}", name, text_of(in.data()),
                               text_of(out.data()), stream)};
    };
    const const_array_view given(in.data(), dtype::f32, count);
    const array_view result(out.data(), dtype::f32, count);
    for (const auto& [what, memory] : {std::pair("in", in.data()), std::pair("out", out.data())}) {
      pretended::put_out_of_reach(memory);
      expect_error(
          error_of([&] { op.run(given, result); }), errc::invalid_argument,
          {fmt::format("rank {}: all_reduce: {} lies at {}, in memory of the host that GPU",
                       w.rank(), what, text_of(memory))});
    }
    pretended::put_out_of_reach(nullptr);
    (void)noted();
    (void)pretended::runs_in_order();
    op.run(given, result, pretended::a_stream());
    lines first = runs("a stream");
    first.insert(first.begin(), "ask for " + text_of(out.data()));
    EXPECT_EQ(noted(), first) << "in was in reach before";
    op.run(given, result);
    EXPECT_EQ(noted(), runs("none"));
    EXPECT_EQ(told(w, from), lines());
    auto moved = std::move(op);
    moved.run(given, result);
    EXPECT_EQ(noted(), runs("none"));
    EXPECT_EQ(pretended::runs_in_order(), 3);
  });
}

TEST(gpu_collectives_without_kernels, of_any_count_have_a_runner_for_each_end_of_a_table) {
  on_gpus(2, [](world& w) {
    std::vector<float> in(6), out(6);
    std::uint64_t from = w.state().posted(w.rank());
    all_reduce op(w, {.count = 6, .type = dtype::f32}, {.varying_count = true});
    lines asked = noted();
    ASSERT_EQ(asked.size(), 5U);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const int ends[] = {6, 4, 3, 2, 1};
      EXPECT_EQ(asked[i].find(fmt::format("make all_reduce: reduction of {} fp32 by sum, "
                                          "everywhere",
                                          ends[i])),
                0U);
    }
    EXPECT_NE(op.explain().find(", any count up to 6 by 5 plans"), std::string::npos);
    const lines calls = of_kernels(told(w, from));
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls[0].find("all_reduce: fp32, any count 6, sum, "), 0U) << calls[0];
    for (const int end : {1, 6})
      EXPECT_NE(calls[0].find(fmt::format(", up to {}: ranks 2", end)), std::string::npos)
          << calls[0];
    EXPECT_EQ(calls[1], "all_reduce: made");
    const auto run = [&](std::int64_t n, stream_ref stream) {
      op.run(const_array_view(in.data(), dtype::f32, n), array_view(out.data(), dtype::f32, n),
             stream);
      lines noted_calls = noted();
      std::erase_if(noted_calls, [](const std::string& c) { return c.starts_with("ask for"); });
      return noted_calls;
    };
    const std::string name = asked[1].substr(std::string("make all_reduce: ").size());
    const std::string runs = fmt::format("{} runs {} {}, 0 apart, on a stream", name,
                                         text_of(in.data()), text_of(out.data()));
    EXPECT_EQ(run(4, pretended::a_stream()), (lines{name + " gets 4", runs}));
    EXPECT_EQ(told(w, from), lines{"all_reduce: runs of 4 elements"});
    EXPECT_EQ(run(4, pretended::a_stream()), lines{runs});
    EXPECT_EQ(told(w, from), lines());
    EXPECT_EQ(run(0, pretended::a_stream()), lines()) << "nothing to do";
    EXPECT_EQ(told(w, from), lines{"all_reduce: runs of 0 elements"});
    EXPECT_EQ(run(4, pretended::a_stream()), lines{runs}) << "it has the argument still";
    EXPECT_EQ(told(w, from).size(), 1U);
    EXPECT_EQ(run(5, pretended::captured_stream()).size(), 2U);
    EXPECT_EQ(told(w, from), lines()) << "a capture waits for nobody";
    w.barrier();
    w.fail(errc::aborted, "enough");
    expect_error(error_of([&] { (void)run(3, pretended::a_stream()); }), errc::aborted, {"enough"});
  });
}

/// Whether a run has to lie in the symmetric heap: input, result.
template <class Operator, class Problem>
std::pair<bool, bool> shown(world& w, const Problem& problem, const collective_options& options) {
  const auto in = w.allocate_owned<float>(2 * count, "in");
  const auto out = w.allocate_owned<float>(2 * count, "out");
  std::vector<float> elsewhere(2 * count);
  Operator op(w, problem, options);
  const std::int64_t in_count = Operator::in_count(problem, w.size(), w.rank());
  const std::int64_t out_count = Operator::out_count(problem, w.size(), w.rank());
  const auto refused = [&](float* from, float* to) {
    try {
      op.run(const_array_view(from, dtype::f32, in_count), array_view(to, dtype::f32, out_count),
             pretended::a_stream());
      return false;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::not_symmetric) << e.what();
      return true;
    }
  };
  const std::pair found(refused(elsewhere.data(), out->local()),
                        refused(in->local(), elsewhere.data()));
  EXPECT_FALSE(refused(in->local(), out->local()));
  w.barrier();
  return found;
}

TEST(gpu_collectives_without_kernels, direct_ones_agree_on_the_offsets_of_memory) {
  on_gpus(2, [](world& w) {
    const auto in = w.allocate_owned<float>(count, "in");
    const auto out = w.allocate_owned<float>(count, "out");
    all_reduce op(w, {.count = count, .type = dtype::f32},
                  {.wire = wire_kind::bulk, .direct = true, .inputs = input_path::in_place});
    ASSERT_TRUE(op.plan().direct);
    (void)noted();
    std::uint64_t from = w.state().posted(w.rank());
    const auto run = [&](stream_ref stream) {
      op.run(const_array_view(in->local(), dtype::f32, count),
             array_view(out->local(), dtype::f32, count), stream);
      const lines calls = noted();
      return calls.empty() ? std::string() : calls.back();
    };
    const auto apart = reinterpret_cast<const std::byte*>(out->at(1)) -
                       reinterpret_cast<const std::byte*>(out->at(0));
    const std::string between = fmt::format(", {} apart, on ", apart);
    EXPECT_NE(run(pretended::captured_stream()).find(between + "a capture"), std::string::npos);
    EXPECT_EQ(told(w, from), lines());
    const std::string where =
        fmt::format("all_reduce: direct, in at offset {}, out at offset {}",
                    w.heap().offset_of(in->local()), w.heap().offset_of(out->local()));
    EXPECT_NE(run(pretended::a_stream()).find(between + "a stream"), std::string::npos);
    EXPECT_EQ(told(w, from), lines{where});
    (void)run(pretended::a_stream());
    EXPECT_EQ(told(w, from).size(), 1U) << "a peer may pass another pair this time";
    (void)run(pretended::captured_stream());
    EXPECT_EQ(told(w, from), lines());
  });
}

TEST(gpu_collectives_without_kernels, show_the_memory_that_peers_access) {
  on_gpus(2, [](world& w) {
    collective_options direct{
        .wire = wire_kind::bulk, .direct = true, .inputs = input_path::in_place};
    const std::pair both(true, true);
    const std::pair only_in(true, false);
    const std::pair only_out(false, true);
    EXPECT_EQ((shown<all_gather>(w, all_gather_problem{count, dtype::f32}, direct)), only_out);
    EXPECT_EQ((shown<reduce_scatter>(w, reduce_scatter_problem{count, dtype::f32}, direct)),
              only_in);
    EXPECT_EQ((shown<all_reduce>(w, all_reduce_problem{count, dtype::f32}, direct)), both);
    direct.varying_count = true;
    EXPECT_EQ((shown<all_reduce>(w, all_reduce_problem{count, dtype::f32}, direct)), both);
    direct.varying_count = false;
    direct.inputs = input_path::rooms;
    EXPECT_EQ((shown<all_reduce>(w, all_reduce_problem{count, dtype::f32}, direct)), only_out)
        << "inputs are sent";
    direct.direct = false;
    direct.inputs = input_path::automatic;
    EXPECT_EQ((shown<all_reduce>(w, all_reduce_problem{count, dtype::f32}, direct)),
              std::pair(false, false));
  });
}

}  // namespace
