// GEMM operators in worlds of GPUs, up to their kernels: what is asked for, what ranks compare, and
// what of a run comes to the kernels.
#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/untax.hpp>

#include "tests/errors.hpp"
#include "tests/pretended/kernels.hpp"
#include "tests/pretended/uses.hpp"

namespace {

using namespace untax;
using pretended::lines;
using pretended::noted;
using pretended::on_gpus;
using pretended::text_of;
using pretended::told;
using untax::pretended_uses::elements;
using untax::pretended_uses::use;
using untax_test::error_of;
using untax_test::expect_error;

template <class Operator>
class gpu_operators_without_kernels : public testing::Test {};
using all_gemms =
    testing::Types<all_gather_gemm, gemm_all_scatter, gemm_reduce_scatter, gemm_all_reduce>;
TYPED_TEST_SUITE(gpu_operators_without_kernels, all_gemms);

const std::string asked = "fused_specialized, push, workers 3, senders 2, phases ";

TYPED_TEST(gpu_operators_without_kernels, ask_for_the_kernels_of_their_problem_and_agree_on_it) {
  using how = use<TypeParam>;
  on_gpus(2, [](world& w) {
    std::uint64_t from = w.state().posted(w.rank());
    operator_options options{.how = pattern::fused_specialized, .workers = 3, .senders = 2};
    auto op = how::make(w, options);
    EXPECT_EQ(noted(), lines{fmt::format("make {} of 6: {}, {}0", how::kernels,
                                         how::problem(w, op, 6), asked)});
    auto calls = told(w, from);
    std::erase_if(calls, [](const std::string& c) { return c.starts_with("allocate"); });
    ASSERT_EQ(calls.size(), 2U) << fmt::format("{}", fmt::join(calls, "\n"));
    EXPECT_TRUE(calls[0].starts_with(
        fmt::format("{}: {}, fused_specialized, push, 3 workers", how::name, how::agreed())))
        << calls[0];
    EXPECT_EQ(calls[1], fmt::format("{}: made fused_specialized", how::name));
    EXPECT_EQ(op.plan().how, pattern::fused_specialized);
    EXPECT_EQ(op.plan().world, 2);
    EXPECT_EQ(op.plan().rank, w.rank());
    EXPECT_EQ(op.explain().find(fmt::format("pretended {} of 6", how::kernels)), 0U);
  });
}

TYPED_TEST(gpu_operators_without_kernels, run_kernels_on_the_stream_of_the_caller_or_their_own) {
  using how = use<TypeParam>;
  on_gpus(2, [](world& w) {
    elements a, b, c;
    auto op = how::make(w, {.how = pattern::fused_sequential});
    const matrix to = how::result(op, c, 6);
    (void)noted();
    std::uint64_t from = w.state().posted(w.rank());
    const std::string run = fmt::format("{} of 6 runs {} {} {} on ", how::kernels, text_of(a.data),
                                        text_of(b.data), text_of(to.data));
    how::run(op, a, b, to, {});
    EXPECT_EQ(noted(), (lines{"ask for " + text_of(a.data), "ask for " + text_of(b.data),
                              "ask for " + text_of(to.data), run + "its own stream",
                              fmt::format("wait for its own stream: rank {}: {}: a kernel failed",
                                          w.rank(), how::name)}));
    how::run(op, a, b, to, pretended::a_stream());
    EXPECT_EQ(noted(), lines{run + "a stream"}) << "what was right is not asked for again";
    EXPECT_EQ(told(w, from), lines());
    EXPECT_EQ(pretended::runs_in_order(), 2);
  });
}

TYPED_TEST(gpu_operators_without_kernels, end_together_after_their_runs) {
  using how = use<TypeParam>;
  on_gpus(2, [](world& w) {
    {
      auto op = how::make(w, {.how = pattern::fused_sequential});
      auto other = how::make(w, {.how = pattern::fused_sequential});
      auto third = std::move(other);
      (void)noted();
      std::uint64_t from = w.state().posted(w.rank());
      op = std::move(third);
      const lines ends = {fmt::format("wait for GPU {}", w.rank()),
                          fmt::format("{} of 6 ends", how::kernels)};
      EXPECT_EQ(noted(), ends) << "the one that was there before";
      lines calls = told(w, from);
      ASSERT_FALSE(calls.empty());
      EXPECT_EQ(calls.front(), "barrier");
      elements a, b, c;
      how::run(op, a, b, how::result(op, c, 6), pretended::a_stream());
      EXPECT_EQ(op.explain().find("pretended"), 0U);
      (void)noted();
      auto& same = op;
      op = std::move(same);
      EXPECT_EQ(noted(), lines());
      how::run(op, a, b, how::result(op, c, 6), pretended::a_stream());
      (void)noted();
    }
    EXPECT_EQ(noted(), (lines{fmt::format("wait for GPU {}", w.rank()),
                              fmt::format("{} of 6 ends", how::kernels)}));
    w.barrier();
    w.barrier();
    EXPECT_EQ(w.heap().used(), 0U);
  });
}

// Kernels of a rank that leaves with an exception may go on, and write there.
TYPED_TEST(gpu_operators_without_kernels, leave_memory_alone_after_an_exception) {
  using how = use<TypeParam>;
  on_gpus(2, [](world& w) {
    std::size_t used = 0;
    std::uint64_t from = 0;
    try {
      auto op = how::make(w, {.how = pattern::fused_sequential});
      used = w.heap().used();
      w.barrier();
      (void)noted();
      from = w.state().posted(w.rank());
      throw std::runtime_error("enough");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(noted(), lines{fmt::format("{} of 6 ends", how::kernels)}) << "nothing is waited for";
    EXPECT_EQ(told(w, from), lines());
    EXPECT_EQ(w.heap().retired(), 0U);
    EXPECT_EQ(w.heap().used(), used);
  });
}

TYPED_TEST(gpu_operators_without_kernels, of_any_rows_have_kernels_for_each_end_of_a_table) {
  using how = use<TypeParam>;
  on_gpus(2, [](world& w) {
    operator_options options{.how = pattern::fused_specialized, .workers = 3, .senders = 2};
    options.varying_rows = true;
    auto op = how::make(w, options);
    lines wanted;
    for (const int m : {6, 4, 3, 2, 1})  // the largest first, whose rooms fit all
      wanted.push_back(fmt::format("make {} of {}: {}, {}0, rows vary", how::kernels, m,
                                   how::problem(w, op, m), asked));
    EXPECT_EQ(noted(), wanted);
    EXPECT_EQ(op.explain().find(fmt::format("any number of rows up to 6 by 5 plans; with the most: "
                                            "pretended {} of 6",
                                            how::kernels)),
              0U)
        << op.explain();
    elements a, b, c;
    std::uint64_t from = w.state().posted(w.rank());
    const auto run = [&](std::int64_t rows, stream_ref stream) {
      how::run(op, a, b, how::result(op, c, rows), stream);
      lines calls = noted();
      std::erase_if(calls, [](const std::string& line) { return line.starts_with("ask for"); });
      return calls;
    };
    const auto runs = [&](int count, const char* stream, std::int64_t rows) {
      return fmt::format("{} of {} runs {} {} {} on {}", how::kernels, count, text_of(a.data),
                         text_of(b.data), text_of(how::result(op, c, rows).data), stream);
    };
    const std::string gets = std::string(how::kernels) + " of 4 gets 4 rows";
    EXPECT_EQ(run(4, pretended::a_stream()), (lines{gets, runs(4, "a stream", 4)}));
    EXPECT_EQ(told(w, from), lines{fmt::format("{}: runs of 4 rows", how::name)});
    EXPECT_EQ(run(4, pretended::a_stream()), lines{runs(4, "a stream", 4)});
    EXPECT_EQ(told(w, from), lines());
    EXPECT_EQ(run(0, pretended::a_stream()), lines()) << "nothing to do";
    EXPECT_EQ(told(w, from), lines{fmt::format("{}: runs of 0 rows", how::name)});
    EXPECT_EQ(run(2, pretended::captured_stream()),
              (lines{fmt::format("{} of 2 gets 2 rows", how::kernels), runs(2, "a capture", 2)}));
    EXPECT_EQ(told(w, from), lines()) << "a capture waits for nobody";
    EXPECT_EQ(run(6, pretended::a_stream()).size(), 2U);
    EXPECT_EQ(told(w, from).size(), 1U);
    // Asked for by no pattern: what tables say, or the first that there is.
    options.how = pattern::automatic;
    auto chosen = how::make(w, options);
    EXPECT_NE(chosen.plan().how, pattern::automatic);
    EXPECT_NE(chosen.plan().how, pattern::bulk_library);
    EXPECT_EQ(noted().size(), 5U);
    EXPECT_NE(chosen.explain().find("up to 6 rows "), std::string::npos) << chosen.explain();
  });
}

TYPED_TEST(gpu_operators_without_kernels, refuse_bulk_library_in_a_build_without_cuda) {
  using how = use<TypeParam>;
  on_gpus(1, [](world& w) {
    operator_options options{.how = pattern::bulk_library};
    const auto plan = [&] { (void)how::make(w, options); };
    expect_error(error_of(plan), errc::unsupported, {"built without"});
    options.invariant = true;
    expect_error(error_of(plan), errc::unsupported, {how::name, "option invariant"});
    options.invariant = false;
    options.varying_rows = true;  // which it has, where there are libraries
    expect_error(error_of(plan), errc::unsupported, {"built without"});
    EXPECT_EQ(noted(), lines());
  });
}

TYPED_TEST(gpu_operators_without_kernels, refuse_operands_that_kernels_cannot_read) {
  using how = use<TypeParam>;
  on_gpus(1, [](world& w) {
    elements a, b, c;
    auto op = how::make(w, {.how = pattern::fused_sequential});
    const matrix to = how::result(op, c, 6);
    (void)noted();
    for (const void* p : {static_cast<const void*>(a.data), static_cast<const void*>(b.data)}) {
      // The address was in reach in the run before: its memory was freed, and reused, since then.
      pretended::put_out_of_reach(nullptr);
      how::run(op, a, b, to, pretended::a_stream());
      pretended::put_out_of_reach(p);
      expect_error(error_of([&] { how::run(op, a, b, to, pretended::a_stream()); }),
                   errc::invalid_argument, {how::name, "memory of the host that GPU 0 cannot"});
    }
    pretended::put_out_of_reach(nullptr);
    how::run(op, a, b, to, pretended::a_stream());
  });
}

TEST(gpu_sums_without_kernels, of_one_rank_are_the_gemm_alone_by_default) {
  on_gpus(1, [](world& w) {
    const auto make = [&](const operator_options& options) {
      (void)gemm_reduce_scatter(w, {.m = 6, .n = 64, .k = 128}, options);
      return noted().front();
    };
    EXPECT_EQ(make({}), "make lonely sum of 6: gemm_reduce_scatter, m 6, n 64, k 128");
    for (const auto& options :
         {operator_options{.how = pattern::fused_sequential}, operator_options{.invariant = true},
          operator_options{.varying_rows = true}})
      EXPECT_EQ(make(options).find("make sums of"), 0U);
  });
}

TEST(gpu_sums_without_kernels, have_the_phases_of_the_option) {
  on_gpus(2, [](world& w) {
    for (const int phases : {1, 2}) {
      (void)noted();
      operator_options options{.how = pattern::fused_sequential, .phases = phases};
      const gemm_all_reduce op(w, {.m = 6, .n = 64, .k = 128}, options);
      EXPECT_EQ(op.plan().phases, phases);
      EXPECT_NE(noted().front().find(fmt::format("everywhere, phases {},", phases)),
                std::string::npos);
      EXPECT_NE(op.explain().find(phases == 1 ? ", 1 phase: everybody" : ", 2 phases: owners"),
                std::string::npos)
          << op.explain();
    }
    (void)noted();
    // Without: by rows, and so for each end of a table.
    operator_options options{.how = pattern::fused_sequential, .varying_rows = true};
    // Two GPUs add everything twice below 16 MiB.
    const gemm_all_reduce op(w, {.m = 32768, .n = 256, .k = 128}, options);
    const lines calls = noted();
    EXPECT_NE(calls.front().find("phases 2,"), std::string::npos) << calls.front();
    EXPECT_NE(calls.back().find("phases 1,"), std::string::npos) << calls.back();
    EXPECT_EQ(op.plan().phases, 2);
  });
}

TEST(gpu_scatter_without_kernels, agrees_once_on_the_place_of_c) {
  on_gpus(2, [](world& w) {
    elements a, b;
    gemm_all_scatter op(w, {.m = 6, .n = 64, .k = 128}, {.how = pattern::fused_sequential});
    const auto other = w.allocate_owned<std::uint16_t>(6 * 64, "other");
    const matrix c(other->local(), dtype::bf16, 6, 64);
    std::uint64_t from = w.state().posted(w.rank());
    const auto run = [&](const matrix& to, stream_ref stream) {
      use<gemm_all_scatter>::run(op, a, b, to, stream);
      return told(w, from);
    };
    const auto offset = reinterpret_cast<const std::byte*>(other->local()) -
                        static_cast<const std::byte*>(op.result().data);
    const lines agreed = {
        fmt::format("gemm_all_scatter: c at offset {} from result(), row stride 64", offset)};
    EXPECT_EQ(run(c, pretended::captured_stream()), lines());
    EXPECT_EQ(run(c, pretended::a_stream()), agreed);
    EXPECT_EQ(run(c, pretended::a_stream()), lines());
    EXPECT_EQ(run(op.result(), pretended::a_stream()),
              lines{"gemm_all_scatter: c at offset 0 from result(), row stride 64"});
    elements outside;
    expect_error(error_of([&] {
                   (void)run(outside.as({6, 64}), pretended::a_stream());
                 }),
                 errc::not_symmetric, {"does not lie in this rank's symmetric heap"});
  });
}

/// A gather of rows in bulk_synchronous: an all_gather, and a product behind it.
class gpu_gathers_first : public testing::Test {
 protected:
  static constexpr std::int64_t n = 64;
  static constexpr std::int64_t k = 128;

  /// Notes of kernels and plans alone.
  static lines kernels() {
    lines calls = noted();
    std::erase_if(calls, [](const std::string& line) { return line.starts_with("ask for"); });
    return calls;
  }
  static void run(all_gather_gemm& op, elements& a, elements& b, elements& c, std::int64_t rows,
                  stream_ref stream) {
    const extent shard =
        all_gather_gemm::a_shard({.m = rows, .n = n, .k = k}, op.plan().world, op.plan().rank);
    op.run(as_const(a.as(shard)), as_const(b.as({n, k})), c.as({rows, n}), stream);
  }
};

/// The last word but so many of a line.
std::string word_before_end(const std::string& line, int words) {
  std::size_t end = line.size();
  for (; words > 0; --words) end = line.rfind(' ', end - 1);
  const std::size_t begin = line.rfind(' ', end - 1) + 1;
  return line.substr(begin, end - begin);
}

TEST_F(gpu_gathers_first, gathers_into_memory_that_the_product_reads) {
  on_gpus(2, [](world& w) {
    const operator_options options{.how = pattern::bulk_synchronous, .constant_weights = true};
    const std::size_t used = w.heap().used();
    {
      // An odd number of rows, so that rank 1 has fewer.
      all_gather_gemm op(w, {.m = 7, .n = n, .k = k}, options);
      lines planned_calls = kernels();
      ASSERT_EQ(planned_calls.size(), 3U) << fmt::format("{}", fmt::join(planned_calls, "\n"));
      EXPECT_TRUE(planned_calls[0].starts_with("make all_gather: exchange of bf16"))
          << planned_calls[0];
      EXPECT_NE(planned_calls[1].find("on none"), std::string::npos)
          << "the first run on memory is not one of the caller's: " << planned_calls[1];
      EXPECT_EQ(planned_calls[2],
                "make product of 7: 1 plans, above 0 rows, n 64, k 128, bf16 to bf16, constant "
                "weights, 1 rank");
      EXPECT_EQ(op.plan().how, pattern::bulk_synchronous);
      EXPECT_EQ(op.explain().find("all_gather_gemm: bulk_synchronous, all_gather: "), 0U)
          << op.explain();
      EXPECT_TRUE(op.explain().ends_with(", then pretended product of 7")) << op.explain();
      EXPECT_GE(w.heap().used(), used + 7 * k * 2);
      elements a, b, c;
      run(op, a, b, c, 7, pretended::a_stream());
      const lines calls = kernels();
      ASSERT_EQ(calls.size(), 2U) << fmt::format("{}", fmt::join(calls, "\n"));
      EXPECT_NE(calls[0].find(" runs " + text_of(a.data)), std::string::npos) << calls[0];
      EXPECT_TRUE(calls[0].ends_with("on a stream")) << calls[0];
      // "... runs IN OUT, 0 apart, on a stream"
      std::string rows = word_before_end(calls[0], 5);
      ASSERT_EQ(rows.back(), ',') << calls[0];
      rows.pop_back();
      EXPECT_EQ(calls[1], fmt::format("product of 7 runs {} {} {} on a stream", rows,
                                      text_of(b.data), text_of(c.data)));
    }
    (void)noted();
    w.barrier();
    w.barrier();
    EXPECT_EQ(w.heap().used(), used);
  });
}

TEST_F(gpu_gathers_first, makes_a_gather_for_each_end_of_a_table) {
  on_gpus(2, [](world& w) {
    operator_options options{.how = pattern::bulk_synchronous, .invariant = true};
    options.varying_rows = true;
    all_gather_gemm op(w, {.m = 6, .n = n, .k = k}, options);
    const lines planned_calls = kernels();
    const auto begin_with = [&](const char* text) {
      return std::ranges::count_if(planned_calls,
                                   [&](const auto& line) { return line.starts_with(text); });
    };
    EXPECT_EQ(begin_with("make all_gather"), 5) << "one for each end of one table";
    EXPECT_EQ(begin_with("make product"), 5);
    EXPECT_EQ(planned_calls.back(),
              "make product of 1: 1 plans, above 0 rows, n 64, k 128, bf16 to bf16, "
              "invariant, 1 rank");
    EXPECT_EQ(begin_with("make product of 6: 1 plans, above 3 rows"), 1)
        << "smaller ones serve up to 4 rows";
    elements a, b, c;
    for (const std::int64_t rows : {5, 4, 1}) {
      run(op, a, b, c, rows, pretended::a_stream());
      const lines calls = kernels();
      ASSERT_EQ(calls.size(), 4U) << fmt::format("{}", fmt::join(calls, "\n"));
      const std::int64_t end = rows == 5 ? 6 : rows;
      EXPECT_EQ(calls[0], fmt::format("product of {} gets {} rows", end, rows));
      EXPECT_NE(calls[1].find(" gets "), std::string::npos) << calls[1];
      EXPECT_NE(calls[2].find(" runs "), std::string::npos) << calls[2];
      EXPECT_EQ(calls[3].find(fmt::format("product of {} runs ", end)), 0U) << calls[3];
    }
    run(op, a, b, c, 0, pretended::a_stream());
    EXPECT_EQ(kernels(), lines());
  });
}

TEST_F(gpu_gathers_first, is_not_used_with_options_that_its_parts_lack) {
  on_gpus(2, [](world& w) {
    const auto first = [&](const all_gather_gemm_problem& problem, operator_options options) {
      options.how = pattern::bulk_synchronous;
      (void)all_gather_gemm(w, problem, options);
      return kernels().front();
    };
    EXPECT_EQ(first({.m = 6, .n = n, .k = k, .gather = gather_axis::k}, {}).find("make gather of"),
              0U);
    EXPECT_EQ(first({.m = 6, .n = n, .k = k}, {.workers = 3}).find("make gather of 6"), 0U);
    EXPECT_EQ(first({.m = 6, .n = n, .k = k}, {.senders = 3}).find("make gather of 6"), 0U);
    EXPECT_EQ(first({.m = 6, .n = n, .k = k}, {}).find("make all_gather"), 0U);
  });
  on_gpus(1, [](world& w) {
    all_gather_gemm op(w, {.m = 6, .n = n, .k = k}, {.how = pattern::bulk_synchronous});
    EXPECT_EQ(kernels().size(), 1U) << "one rank has all rows";
    elements a, b, c;
    run(op, a, b, c, 6, pretended::a_stream());
    EXPECT_EQ(kernels(), lines{fmt::format("product of 6 runs {} {} {} on a stream",
                                           text_of(a.data), text_of(b.data), text_of(c.data))});
  });
}

// Nothing was launched, so the rank may go on; but a peer would wait for the rest of a run.
TEST_F(gpu_gathers_first, stops_the_world_if_no_product_follows) {
  on_gpus(1, [](world& w) {
    all_gather_gemm op(w, {.m = 6, .n = n, .k = k}, {.how = pattern::bulk_synchronous});
    elements a, b, c;
    pretended::fail_next("no product");
    expect_error(error_of([&] { run(op, a, b, c, 6, pretended::a_stream()); }), errc::internal,
                 {"no product"});
    run(op, a, b, c, 6, pretended::a_stream());
  });
  on_gpus(2, [](world& w) {
    all_gather_gemm op(w, {.m = 6, .n = n, .k = k}, {.how = pattern::bulk_synchronous});
    elements a, b, c;
    pretended::fail_next("no gather");
    expect_error(error_of([&] { run(op, a, b, c, 6, pretended::a_stream()); }), errc::internal,
                 {"no gather"});
    run(op, a, b, c, 6, pretended::a_stream());
    w.barrier();
    if (w.rank() == 0) {
      while (!w.stopped()) std::this_thread::yield();
      expect_error(error_of([&] { w.check(); }), errc::aborted,
                   {"no product", "so the world is stopped"});
      return;
    }
    pretended::fail_second("no product");
    expect_error(error_of([&] { run(op, a, b, c, 6, pretended::a_stream()); }), errc::internal,
                 {"no product"});
    EXPECT_TRUE(w.stopped());
  });
}

TEST(gpu_operators_refused, with_varying_rows_and_pull) {
  on_gpus(1, [](world& w) {
    operator_options options{.how = pattern::producer_consumer, .move = direction::pull};
    options.varying_rows = true;
    expect_error(error_of([&] { (void)all_gather_gemm(w, {.m = 6, .n = 64, .k = 128}, options); }),
                 errc::unsupported, {"all_gather_gemm", "do not pull"});
  });
}

}  // namespace
