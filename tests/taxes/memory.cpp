// Memory that work takes is reckoned before it is taken, and refused where it is not there.
#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/taxes/layer.hpp>

#include "bench/suites/gpu_need.hpp"
#include "bench/suites/pattern_runs.hpp"
#include "ops/all_reduce_norm/workload.hpp"
#include "ops/collectives_common/registry.hpp"
#include "ops/collectives_common/workload.hpp"
#include "ops/common/registry.hpp"
#include "ops/common/workload.hpp"
#include "ops/flash_decode/workload.hpp"
#include "ops/merge_partial_attention/workload.hpp"
#include "sample.hpp"
#include "src/taxes/memory_room.hpp"
#include "src/taxes/taxes_need.hpp"

namespace untax::test {
namespace {

constexpr double gib = 0x1p30;
constexpr std::int64_t most_of_any = 2147483647;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

layer_operation operation(const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.name = "it", .operator_name = name, .m = m, .n = n, .k = k};
}

ablation_options with(int ranks, memory_kind backend = memory_kind::host) {
  ablation_options options;
  options.ranks = ranks;
  options.backend = backend;
  return options;
}

TEST(memory_need, text_has_the_largest_first) {
  const memory_need need{.weights = 1024, .activations = 3 * gib, .heap_of_rank = 1};
  EXPECT_EQ(need.text(), "activations 3 GiB, weights 1 KiB");
  EXPECT_EQ(need.total(), 3 * gib + 1024);
  EXPECT_EQ(memory_text(12), "12 bytes");
  EXPECT_EQ(memory_text(1.5 * gib), "1.5 GiB");
  EXPECT_EQ(memory_text(0x1p90), "1.07e+09 EiB");
}

TEST(memory_need, sizes_of_allocations_have_a_limit) {
  EXPECT_EQ(whole_bytes(-1), 0U);
  EXPECT_EQ(whole_bytes(1e6), 1000000U);
  EXPECT_EQ(whole_bytes(1e300), std::size_t{1} << 56);
}

// Each rank: A and B and C whole or in part, as the operator deals them.
TEST(memory_need, operands_by_hand) {
  const gemm_problem problem{.m = 128, .n = 256, .k = 512};
  const memory_need gathered = operands_need(operator_named("all_gather_gemm"), problem, 2, 0);
  EXPECT_EQ(gathered.weights, 4.0 * 256 * 512);
  EXPECT_EQ(gathered.activations, 4.0 * (64 * 512 + 128 * 256));
  EXPECT_EQ(gathered.heap_of_rank, 0);
  const memory_need scattered = operands_need(operator_named("gemm_all_scatter"), problem, 2, 0);
  EXPECT_EQ(scattered.weights, 4.0 * 128 * 512);
  EXPECT_EQ(scattered.heap_of_rank, 4.0 * 128 * 256) << "peers write the result";
}

TEST(memory_need, a_subject_has_its_operands_for_every_pattern) {
  const gemm_problem problem{.m = 128, .n = 256, .k = 512};
  for (const operator_entry& entry : operators()) {
    const trial_subject what = subject_of(entry, problem, {});
    const memory_need need = what.need(2, {pattern::bulk_library}, false);
    const memory_need two = what.need(2, {pattern::bulk_library, pattern::bulk_library}, false);
    EXPECT_EQ(two.total(), 2 * need.total()) << entry.name;
    EXPECT_EQ(two.heap_of_rank, 2 * need.heap_of_rank) << entry.name;
    EXPECT_GE(need.weights, 4.0 * 256 * 512) << entry.name;
    EXPECT_GT(what.need(2, {pattern::bulk_library}, true).total(), need.total()) << entry.name;
    EXPECT_LE(need.heap_of_rank, static_cast<double>(what.heap_bytes(2))) << entry.name;
  }
}

// In 64 bits the products of these sizes would be anything, also zero.
TEST(memory_need, sizes_that_no_integer_holds_are_still_too_large) {
  std::vector<trial_subject> subjects;
  for (const operator_entry& entry : operators()) {
    subjects.push_back(
        subject_of(entry, {.m = most_of_any, .n = most_of_any, .k = most_of_any}, {}));
  }
  attention_work work{{.batch = most_of_any,
                       .heads = most_of_any,
                       .kv_heads = most_of_any,
                       .head_dim = 4096,
                       .keys = most_of_any}};
  subjects.push_back(subject_of(work, {}, memory_kind::host));
  work.problem.page_size = most_of_any;
  work.problem.pages = most_of_any * (most_of_any / 2);
  subjects.push_back(subject_of(work, {}, memory_kind::host));
  for (const trial_subject& what : subjects) {
    EXPECT_GT(what.need(64, what.patterns, true).total(), 0x1p60) << what.description;
    bench::pattern_request request;
    request.what = what;
    request.patterns = what.patterns;
    const std::string text =
        error_text([&] { bench::require_memory(request, 64); }, errc::out_of_memory);
    EXPECT_TRUE(contains(text, " of memory (")) << text;
    EXPECT_TRUE(contains(text, "is free on this machine; ")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(memory_need, of_collectives_has_inputs_and_results) {
  for (const collective_entry& entry : collectives()) {
    const trial_subject what = subject_of(entry, {.count = most_of_any}, {});
    EXPECT_GT(what.need(8, {pattern::fused_sequential}, false).activations, 4.0 * most_of_any)
        << entry.name;
  }
}

TEST(memory_need, of_a_gpu_is_that_of_one_rank) {
  const all_reduce_norm_problem norm{.tokens = 8, .hidden = 64, .type = dtype::bf16};
  const merge_partial_attention_problem merge{.tokens = 8, .heads = 2, .head_dim = 64};
  for (const trial_subject& what :
       {subject_of(norm, {}, memory_kind::cuda), subject_of(merge, {}, memory_kind::cuda)}) {
    const memory_need alone = what.need(1, what.patterns, false);
    EXPECT_EQ(what.need(4, what.patterns, false).activations, alone.activations) << what.name;
    EXPECT_EQ(alone.heap_of_rank, static_cast<double>(what.heap_bytes(1))) << what.name;
  }
  // in and residual, x and out, and the weight.
  EXPECT_EQ(subject_of(norm, {}, memory_kind::host)
                .need(2, {pattern::fused_sequential}, false)
                .activations,
            2.0 * 2 * (4 * 8 * 64 + 64));
}

TEST(memory_room, is_that_of_the_machine) {
  machine_facts machine;
  machine.memory_bytes = 4000;
  machine.memory_available = 1000;
  EXPECT_EQ(room_of(machine).bytes, 1000);
  machine.memory_bytes = machine.memory_available = 0;
  EXPECT_GT(room_of(machine).bytes, 1e300) << "nothing is known";
}

TEST(memory_room, is_that_of_the_fullest_gpu) {
  std::vector<device_facts> gpus(3);
  gpus[0].memory_free = 3000;
  gpus[1].memory_free = 2000;
  gpus[2].memory_free = 1000;
  EXPECT_EQ(room_of(gpus, 2, 1).bytes, 2000);
  EXPECT_EQ(room_of(gpus, 2, 1).where, "free on GPU 1");
  EXPECT_EQ(room_of(gpus, 6, 2).bytes, 500);
  EXPECT_EQ(room_of(gpus, 6, 2).where, "free on GPU 2 for each of 2 ranks");
  EXPECT_EQ(room_of(gpus, 3, 4).bytes, 1000) << "three ranks on the first";
  EXPECT_GT(room_of({}, 3, 1).bytes, 1e300);
}

TEST(memory_room, refuses_in_one_line) {
  const memory_need need{.weights = 3 * gib, .activations = gib};
  require_room("it", need, {4 * gib, "here"}, {}, "");
  const std::vector<remedy> remedies = {{"try one", {.weights = gib}}, {"try two", need}};
  EXPECT_EQ(error_text(
                [&] {
                  require_room("it", need, {2 * gib, "here"}, remedies, "no");
                },
                errc::out_of_memory),
            "it needs 4 GiB of memory (weights 3 GiB, activations 1 GiB), and 2 GiB is free "
            "here; try one, which needs 1 GiB");
  EXPECT_TRUE(contains(error_text(
                           [&] {
                             require_room("it", need, {1, "here"}, remedies, "no");
                           },
                           errc::out_of_memory),
                       "is free here; no"));
}

TEST(memory_room, of_a_heap_is_that_of_the_environment) {
  const memory_need need{.heap_of_rank = 0x1p20};
  require_heap("it", need, 0x1p20, 0x1p22);
  EXPECT_EQ(error_text([&] { require_heap("it", need, 0x1p16, 0x1p22); }, errc::out_of_memory),
            "it needs at least 1 MiB of symmetric heap in each rank, and UNTAX_HEAP_BYTES is "
            "64 KiB; leave it unset, or set it to 4M");
}

TEST(gpu_need, a_gemm_lies_at_several_places) {
  bench::gemm_row row;
  row.m = 1024;
  row.n = 7168;
  row.k = 8192;
  const double once = 2.0 * (1024 * 8192 + 7168 * 8192 + 1024 * 7168);
  EXPECT_DOUBLE_EQ(bench::need_of(row, dtype::bf16).total(), once * (200 * 0x1p20 / once + 1));
  row.m = most_of_any;
  EXPECT_GT(bench::need_of(row, dtype::bf16).total(), 6e13);
}

TEST(gpu_need, vectors_of_collectives_add_to_the_heap) {
  bench::collective_suite_options options;
  options.sizes = {4, most_of_any};
  EXPECT_EQ(bench::need_of(options).total(), 12 * gib + 3.0 * most_of_any);
}

TEST(gpu_need, attention_that_no_gpu_holds_is_refused) {
  bench::attention_suite_options options;
  options.heads = {bench::known_attention_heads().front()};
  options.batches = {4096};
  options.keys = {most_of_any};
  EXPECT_TRUE(contains(error_text([&] { bench::require_memory(options); }, errc::out_of_memory),
                       "fewer --keys"));
}

TEST(taxes_need, weights_of_all_ranks_count_on_the_host_and_of_one_on_a_gpu) {
  const layer_operation op = operation("all_gather_gemm", 64, 28672, 8192);
  const double weights = 2.0 * 28672 * 8192;
  EXPECT_EQ(need_of(op, with(4)).weights, 4 * weights);
  EXPECT_EQ(need_of(op, with(4, memory_kind::cuda)).weights,
            weights * (200 * 0x1p20 / weights + 1));
}

TEST(taxes_need, the_largest_operation_is_refused_with_a_size_that_fits) {
  const std::vector<layer_operation> operations = {
      operation("all_gather_gemm", 8, 16, 24),
      operation("gemm_reduce_scatter", 1 << 20, 16384, 53248), operation("nobody_knows", 1, 1, 1)};
  const auto refused = [&](const ablation_options& options, double room) {
    return error_text(
        [&] {
          require_room_for_all(options, operations, {room, "here"});
        },
        errc::out_of_memory);
  };
  EXPECT_EQ(refused(with(2), 0x1p60), "");
  EXPECT_TRUE(contains(refused(with(2), 8 * gib),
                       "it (gemm_reduce_scatter, m 1048576, n 16384, k 53248, bf16), with 2 ranks, "
                       "needs "));
  EXPECT_TRUE(contains(refused(with(2), 8 * gib), "is free here; fewer --tokens fit"));
  EXPECT_TRUE(contains(refused(with(2), gib), "a machine with more memory"));
  EXPECT_TRUE(contains(refused(with(2, memory_kind::cuda), gib), "more GPUs"));
}

TEST(taxes_need, of_one_operator_alone_advises_a_smaller_m) {
  layer_operation op = operation("all_gather_gemm", 100'000'000, 128, 128);
  op.name = op.operator_name;
  const std::string text = error_text(
      [&] {
        require_room_for_all(with(2), {op}, {gib, "here"});
      },
      errc::out_of_memory);
  EXPECT_TRUE(contains(text, "is free here; a smaller -m fits")) << text;
  op = operation("flash_decode", most_of_any, most_of_any, most_of_any);
  op.attention = {most_of_any, most_of_any, 4096};
  op.name = op.operator_name;
  EXPECT_TRUE(
      contains(error_text([&] { (void)make_tax_backend(with(2), {op}); }, errc::out_of_memory),
               "fewer --keys or a smaller -m fit"));
}

TEST(taxes_need, a_cache_that_does_not_fit_is_refused_before_it_is_made) {
  layer_operation op = operation("flash_decode", most_of_any, most_of_any, most_of_any);
  op.attention = {most_of_any, most_of_any, 4096};
  const std::string text =
      error_text([&] { (void)make_tax_backend(with(2), {op}); }, errc::out_of_memory);
  EXPECT_TRUE(contains(text, "fewer --keys or --tokens fit")) << text;
}

}  // namespace
}  // namespace untax::test
