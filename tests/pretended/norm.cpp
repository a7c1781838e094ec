// all_reduce_norm in worlds of GPUs, up to its kernel.
#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
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

constexpr std::int64_t tokens = 6;
constexpr std::int64_t hidden = 64;
constexpr auto sequential = pattern::fused_sequential;

/// The operands of a run, with rows at multiples of 16 bytes.
struct alignas(64) memory {
  std::uint16_t in[tokens * hidden + 64] = {};
  std::uint16_t residual[tokens * hidden + 64] = {};
  std::uint16_t weight[hidden + 64] = {};
  std::uint16_t x[tokens * hidden + 64] = {};
  std::uint16_t out[tokens * hidden + 64] = {};
  float scales[64] = {};

  [[nodiscard]] norm_inputs inputs(std::int64_t rows = tokens) const {
    return {.in = {in, dtype::bf16, rows, hidden},
            .residual = {residual, dtype::bf16, rows, hidden},
            .weight = weight,
            .scale = 2};
  }
  [[nodiscard]] norm_results results() { return {x, out, scales}; }
};

std::string run_text(const norm_inputs& in, const norm_results& to, const char* stream) {
  return fmt::format("norm runs {} {} {} scale {} to {} {} {} on {}", text_of(in.in.data),
                     text_of(in.residual.data), text_of(in.weight), in.scale, text_of(to.x),
                     text_of(to.out), text_of(to.scales), stream);
}

lines without_questions(lines calls) {
  std::erase_if(calls, [](const std::string& line) { return line.starts_with("ask for"); });
  return calls;
}

TEST(gpu_norm_without_kernels, asks_for_its_kernel_and_agrees_on_it) {
  on_gpus(2, [](world& w) {
    for (const int phases : {1, 2}) {
      (void)noted();
      std::uint64_t from = w.state().posted(w.rank());
      all_reduce_norm op(
          w, {.tokens = tokens, .hidden = hidden, .output = norm_output::e4m3_per_token},
          {.how = sequential, .phases = phases});
      const norm_results own = op.result();
      const auto apart = static_cast<const std::byte*>(w.translate(own.x, 1)) -
                         static_cast<const std::byte*>(w.translate(own.x, 0));
      EXPECT_EQ(noted(), lines{fmt::format(
                             "make norm: tokens 6, hidden 64, bf16, {}, to {} {} {}, {} apart, "
                             "phases {}",
                             name_of(norm_output::e4m3_per_token), text_of(own.x), text_of(own.out),
                             text_of(own.scales), apart, phases)});
      lines calls = told(w, from);
      std::erase_if(calls, [](const std::string& c) { return c.starts_with("allocate"); });
      ASSERT_EQ(calls.size(), 2U);
      EXPECT_EQ(calls[0].find("all_reduce_norm: tokens 6, hidden 64, bf16"), 0U) << calls[0];
      EXPECT_EQ(calls[1], "all_reduce_norm: made");
      w.barrier();
    }
  });
}

TEST(gpu_norm_without_kernels, passes_its_operands_to_the_kernel) {
  on_gpus(2, [](world& w) {
    memory m;
    all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden}, {.how = sequential});
    (void)noted();
    std::uint64_t from = w.state().posted(w.rank());
    op.run(m.inputs(), m.results(), pretended::a_stream());
    EXPECT_EQ(noted(),
              (lines{"ask for " + text_of(m.in), "ask for " + text_of(m.residual),
                     "ask for " + text_of(m.weight), "ask for " + text_of(m.x),
                     "ask for " + text_of(m.out), run_text(m.inputs(), m.results(), "a stream")}));
    op.run(m.inputs());
    EXPECT_EQ(without_questions(noted()), lines{run_text(m.inputs(), op.result(), "none")});
    EXPECT_EQ(told(w, from), lines()) << "runs have the same tokens";
    EXPECT_EQ(pretended::runs_in_order(), 2);
  });
}

TEST(gpu_norm_without_kernels, of_any_tokens_passes_their_number) {
  on_gpus(2, [](world& w) {
    memory m;
    all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden},
                       {.how = sequential, .varying_rows = true});
    const norm_results own = op.result();
    const auto apart = static_cast<const std::byte*>(w.translate(own.x, 1)) -
                       static_cast<const std::byte*>(w.translate(own.x, 0));
    EXPECT_EQ(noted(),
              lines{fmt::format("make norm: any of tokens 6, hidden 64, bf16, {}, to {} {} "
                                "{}, {} apart, 1 in 1, 2 in 1, 3 in 1, 4 in 1, 6 in 1",
                                name_of(norm_output::same), text_of(own.x), text_of(own.out),
                                text_of(own.scales), apart)});
    EXPECT_NE(op.explain().find(", any number of rows up to 6 by 5 plans"), std::string::npos);
    std::uint64_t from = w.state().posted(w.rank());
    const auto run = [&](std::int64_t rows, stream_ref stream) {
      op.run(m.inputs(rows), m.results(), stream);
      return without_questions(noted());
    };
    const std::string runs = run_text(m.inputs(), m.results(), "a stream");
    EXPECT_EQ(run(4, pretended::a_stream()), (lines{"norm gets 4", runs}));
    EXPECT_EQ(told(w, from), lines{"all_reduce_norm: runs of 4 rows"});
    EXPECT_EQ(run(4, pretended::a_stream()).size(), 2U);
    EXPECT_EQ(told(w, from), lines());
    EXPECT_EQ(run(0, pretended::a_stream()), lines());
    EXPECT_EQ(told(w, from), lines{"all_reduce_norm: runs of 0 rows"});
    EXPECT_EQ(run(2, pretended::captured_stream()),
              (lines{"norm gets 2", run_text(m.inputs(), m.results(), "a capture")}));
    EXPECT_EQ(told(w, from), lines());
    auto moved = std::move(op);
    moved.run(m.inputs(2), m.results(), pretended::a_stream());
    EXPECT_EQ(told(w, from), lines()) << "it knows how many the last run had";
    expect_error(error_of([&] { op.run(m.inputs(2), m.results(), pretended::a_stream()); }),
                 errc::invalid_argument, {"moved from"});
  });
}

TEST(gpu_norm_without_kernels, ends_when_another_is_moved_onto_it) {
  on_gpus(2, [](world& w) {
    memory m;
    {
      const operator_options any{.how = sequential, .varying_rows = true};
      all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden}, any);
      all_reduce_norm other(w, {.tokens = tokens - 2, .hidden = hidden}, any);
      other.run(m.inputs(3), m.results(), pretended::a_stream());
      (void)noted();
      const norm_results own = other.result();
      op = std::move(other);
      EXPECT_EQ(noted(), lines{"norm ends"});
      EXPECT_EQ(op.result().x, own.x);
      EXPECT_EQ(op.problem().tokens, tokens - 2);
      EXPECT_NE(op.explain().find("up to 4 by 4 plans"), std::string::npos);
      std::uint64_t from = w.state().posted(w.rank());
      op.run(m.inputs(3), m.results(), pretended::a_stream());
      EXPECT_EQ(told(w, from), lines()) << "of its last run, too";
      (void)noted();
      auto& same = op;
      op = std::move(same);
      EXPECT_EQ(noted(), lines());
      op.run(m.inputs(3), m.results(), pretended::a_stream());
      (void)noted();
    }
    EXPECT_EQ(noted(), lines{"norm ends"});
    w.barrier();
    EXPECT_EQ(w.heap().used(), 0U) << w.heap().report();
  });
}

TEST(gpu_norm_without_kernels, leaves_memory_alone_after_an_exception) {
  on_gpus(2, [](world& w) {
    std::size_t used = 0;
    try {
      all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden}, {.how = sequential});
      used = w.heap().used();
      w.barrier();
      throw std::runtime_error("enough");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(w.heap().retired(), 0U);
    EXPECT_EQ(w.heap().used(), used);
  });
}

TEST(gpu_norm_without_kernels, refuses_operands_that_the_kernel_cannot_access) {
  on_gpus(1, [](world& w) {
    memory m;
    all_reduce_norm op(w, {.tokens = tokens, .hidden = hidden}, {.how = sequential});
    const auto run = [&](const norm_inputs& in, const norm_results& to) {
      op.run(in, to, pretended::a_stream());
    };
    struct part {
      const char* name;
      const void* data;
      std::function<void(norm_inputs&, norm_results&)> shift;
    };
    const std::vector<part> parts = {
        {"in", m.in, [&](auto& in, auto&) { in.in.data = m.in + 1; }},
        {"residual", m.residual, [&](auto& in, auto&) { in.residual.data = m.residual + 1; }},
        {"weight", m.weight, [&](auto& in, auto&) { in.weight = m.weight + 1; }},
        {"x", m.x, [&](auto&, auto& to) { to.x = m.x + 1; }},
        {"out", m.out, [&](auto&, auto& to) { to.out = m.out + 1; }}};
    for (const part& p : parts) {
      norm_inputs in = m.inputs();
      norm_results to = m.results();
      p.shift(in, to);
      expect_error(error_of([&] { run(in, to); }), errc::invalid_argument,
                   {fmt::format("rank 0: all_reduce_norm: {} lies at ", p.name),
                    "begin at a multiple of 16 bytes"});
      pretended::put_out_of_reach(p.data);
      expect_error(error_of([&] { run(m.inputs(), m.results()); }), errc::invalid_argument,
                   {fmt::format("{} lies at {}, in memory of the host", p.name, text_of(p.data))});
      pretended::put_out_of_reach(nullptr);
    }
    for (auto rows : {&norm_inputs::in, &norm_inputs::residual}) {
      norm_inputs in = m.inputs();
      (in.*rows).stride = hidden + 8;
      expect_error(error_of([&] { run(in, m.results()); }), errc::invalid_argument,
                   {"has a row stride of 72 and rows of 64 elements"});
    }
    // One row has no neighbour.
    all_reduce_norm single(w, {.tokens = 1, .hidden = hidden}, {.how = sequential});
    norm_inputs in = m.inputs(1);
    in.in.stride = in.residual.stride = hidden + 8;
    single.run(in, m.results(), pretended::a_stream());
    run(m.inputs(), m.results());
  });
}

TEST(gpu_norm_without_kernels, passes_large_sums_on) {
  on_gpus(4, [](world& w) {
    const auto phases_of = [&](std::int64_t rows) {
      return all_reduce_norm(w, {.tokens = rows, .hidden = 1024}, {.how = sequential})
          .plan()
          .phases;
    };
    // Between four ranks one phase sends twice as much: 3 MiB more, from here on.
    EXPECT_EQ(phases_of(767), 1);
    EXPECT_EQ(phases_of(768), 2);
    EXPECT_EQ(phases_of(3), 1);
  });
}

}  // namespace
