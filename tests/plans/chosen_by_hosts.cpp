// All choices and refusals of plans on the host, the memory that they need, and the plans of
// collectives between GPUs. A change has to be intended; then chosen_by_hosts.txt is written anew
// with
//
//     UNTAX_WRITE_PLANS=1 build/release/tests/plans_test --gtest_filter='chosen_by_hosts.*'
//
// Plans must not depend on the number of cores, so the options always name the workers.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/world/launch.hpp>

#include "ops/all_gather/protocol.hpp"
#include "ops/all_reduce/protocol.hpp"
#include "ops/all_to_all/protocol.hpp"
#include "ops/broadcast/protocol.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/planning.hpp"
#include "ops/flash_decode/planning.hpp"
#include "ops/reduce_scatter/protocol.hpp"
#include "tests/wanted_lines.hpp"

namespace untax {
namespace {

constexpr std::string_view file = "tests/plans/chosen_by_hosts.txt";

using lines = std::vector<std::string>;

world a_world(int ranks) {
  world_options small;
  small.heap_bytes = std::size_t{1} << 16;
  return std::move(world::threads(ranks, small).back());
}

/// The text that `make` returns, or the text of its error.
template <class Make>
std::string text_or_refusal(const Make& make) {
  try {
    return make();
  } catch (const error& e) {
    return fmt::format("{}: {}", name_of(e.code()), e.what());
  }
}

/// The largest value from 0 on that `make(value)` does not refuse, and what it says of the next
/// one and of -1.
template <class Make>
std::string limit_of(const Make& make) {
  const auto refused = [&](std::int64_t value) {
    try {
      make(value);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int32_t>::max();
  if (refused(high).empty()) {
    low = high;
  } else {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (refused(middle).empty() ? low : high) = middle;
    }
  }
  return fmt::format("0 {}, most {}; {}; {}", refused(0).empty() ? "can be" : refused(0), low,
                     low < high ? refused(high) : "and more", refused(-1));
}

std::string text_of(const planned_collective& collective, dtype type) {
  return fmt::format("{} | {} | heap {}", collective.explanation, fields_of(collective.plan),
                     heap_for(collective.plan, type));
}

/// Calls `visit(need)` for the collectives of so many elements.
template <class Visit>
void each_collective(int world, std::int64_t count, dtype type, const Visit& visit) {
  visit(need_of(all_gather_problem{count, type}, world));
  visit(need_of(reduce_scatter_problem{count, type}, world));
  visit(need_of(all_reduce_problem{count, type}, world));
  visit(need_of(all_to_all_problem{count / world, type}, world));
  visit(need_of(broadcast_problem{count, type}, world));
}

void add_collectives(lines& out) {
  const auto add_all = [&](int world, std::int64_t count, dtype type,
                           const collective_options& options) {
    each_collective(world, count, type, [&](const collective_need& need) {
      out.push_back(fmt::format("{} ranks: {}", world, text_or_refusal([&] {
                                  return text_of(plan_collective(world, 0, need, options), type);
                                })));
    });
  };
  for (const int world : {1, 2, 3, 8}) {
    for (const std::int64_t count : {0, 1, 5, 1000, 16'383, 16'384, 700'001}) {
      add_all(world, count, count % 2 == 0 ? dtype::f32 : dtype::bf16, {.workers = 1 + world % 3});
    }
  }
  for (const pattern how : all_patterns)
    add_all(3, 100'000, dtype::f32, {.how = how, .workers = 2});
  for (const int phases : {1, 2}) {
    for (const bool direct : {false, true}) {
      for (const input_path inputs :
           {input_path::automatic, input_path::in_place, input_path::rooms}) {
        add_all(4, 300'000, dtype::f32,
                {.phases = phases, .workers = 3, .keepers = 2, .direct = direct, .inputs = inputs});
      }
    }
  }
  for (const wire_kind wire : {wire_kind::stores, wire_kind::bulk, wire_kind::packets})
    add_all(2, 4000, dtype::f32, {.wire = wire, .workers = 1});
  for (const std::int64_t bytes : {1, 4, 100, 4096, 1 << 20}) {
    for (const int depth : {0, 1, 2, 7})
      add_all(2, 50'000, dtype::bf16, {.workers = 2, .chunk_bytes = bytes, .depth = depth});
  }
  add_all(2, std::int64_t{1} << 40, dtype::f32, {.workers = 1, .chunk_bytes = 64});
  add_all(4, 90'000, dtype::f32,
          {.how = pattern::fused_specialized, .workers = 4, .serves = 2, .direct = false});
}

/// Between GPUs, some of which two ranks share.
void add_collectives_of_gpus(lines& out) {
  for (const int world : {1, 2, 3, 4, 8}) {
    for (const std::int64_t count : {1 << 10, 100'000, 1 << 20, 3'000'000, 1 << 24, 100'000'000}) {
      each_collective(world, count, dtype::bf16, [&](const collective_need& need) {
        for (const bool direct : {false, true}) {
          for (int sharing = 1; sharing <= (count == 1 << 20 ? 2 : 1); ++sharing) {
            const collective_options options{.direct = direct};
            out.push_back(fmt::format(
                "{} of {}, {} ranks, {} a GPU{}: {}", need.name, count, world, sharing,
                direct ? ", direct" : "",
                fields_of(
                    plan_collective(world, 0, need, options, memory_kind::cuda, sharing).plan)));
          }
        }
      });
    }
  }
}

void add_limits_of_collectives(lines& out) {
  const auto add = [&](std::string_view what, auto field) {
    out.push_back(fmt::format("all_reduce, {}: {}", what, limit_of([&](std::int64_t value) {
                                collective_options options;
                                options.workers = 1;
                                using type = std::remove_reference_t<decltype(options.*field)>;
                                options.*field = static_cast<type>(value);
                                (void)plan_collective(2, 1, need_of(all_reduce_problem{100}, 2),
                                                      options);
                              })));
  };
  add("workers", &collective_options::workers);
  add("chunk_bytes", &collective_options::chunk_bytes);
  add("depth", &collective_options::depth);
  add("serves", &collective_options::serves);
  add("keepers", &collective_options::keepers);
  add("phases", &collective_options::phases);
  out.push_back(fmt::format("all_gather, phases: {}", limit_of([](std::int64_t value) {
                              collective_options options{.workers = 1};
                              options.phases = static_cast<int>(value);
                              (void)plan_collective(2, 1, need_of(all_gather_problem{100}, 2),
                                                    options);
                            })));
}

void add_gemms(lines& out) {
  for (const int ranks : {1, 3}) {
    const world w = a_world(ranks);
    const auto add = [&](const local_gemm& gemm, const operator_options& options) {
      out.push_back(fmt::format("{} ranks, {} x {} x {}: {}", ranks, gemm.rows, gemm.cols,
                                gemm.depth, text_or_refusal([&] {
                                  const made_plan plan = make_plan(w, "op", gemm, options);
                                  return fmt::format("{} | {} panels of {}, rank {}",
                                                     plan.explanation, name_of(plan.plan.move),
                                                     plan.plan.panel_k, plan.plan.rank);
                                })));
    };
    for (const pattern how : all_patterns) {
      if (how != pattern::automatic)
        add({1000, 3000, 5000, dtype::bf16}, {.how = how, .workers = 2, .senders = 3});
    }
    for (const std::int64_t size : {0, 1, 15, 16, 17, 511, 512, 513, 100'000}) {
      for (const dtype type : {dtype::f32, dtype::f16})
        add({size, size, size, type}, {.how = pattern::fused_sequential, .workers = 3});
      add({64, 1 << 20, size, dtype::bf16}, {.how = pattern::fused_sequential, .workers = 2});
    }
    add({100, 200, 300, dtype::f32}, {.how = pattern::producer_consumer,
                                      .move = direction::pull,
                                      .workers = 4,
                                      .senders = 2,
                                      .tile_m = 33,
                                      .tile_n = 44,
                                      .panel_k = 55});
  }
  const world w = a_world(2);
  const auto limit = [&](std::string_view what, auto field) {
    out.push_back(fmt::format("GEMM, {}: {}", what, limit_of([&](std::int64_t value) {
                                operator_options options;
                                options.workers = 1;
                                using type = std::remove_reference_t<decltype(options.*field)>;
                                options.*field = static_cast<type>(value);
                                (void)make_plan(w, "op", {8, 8, 8, dtype::f32}, options);
                              })));
  };
  limit("workers", &operator_options::workers);
  limit("senders", &operator_options::senders);
  limit("tile_m", &operator_options::tile_m);
  limit("tile_n", &operator_options::tile_n);
  limit("panel_k", &operator_options::panel_k);
  out.push_back(fmt::format(
      "GEMM, m: {}", limit_of([](std::int64_t value) { require_size("op", 2, "m", value); })));
}

void add_attention(lines& out) {
  const world w = a_world(2);
  for (const pattern how : all_patterns) {
    for (const std::int64_t keys : {0, 63, 64, 127, 128, 1000, 100'000}) {
      for (const std::int64_t batch : {1, 3}) {
        const flash_decode_problem p{.batch = batch,
                                     .heads = 8,
                                     .kv_heads = 2,
                                     .head_dim = 96,
                                     .keys = keys,
                                     .type = batch == 1 ? dtype::bf16 : dtype::f32};
        out.push_back(fmt::format(
            "flash_decode, {}: {}", describe(p), text_or_refusal([&] {
              const auto result = make_plan(w, p, {.how = how, .workers = 16});
              return fmt::format("{} | {} | heap {}", result.explanation, fields_of(result.plan),
                                 heap_for(p, 2, result.plan.splits));
            })));
      }
    }
  }
  const auto option = [&](std::string_view what, auto field) {
    out.push_back(
        fmt::format("flash_decode, option {}: {}", what, limit_of([&](std::int64_t value) {
                      flash_decode_options options;
                      options.workers = 1;
                      options.*field = static_cast<int>(value);
                      (void)make_plan(w, {.keys = 100}, options);
                    })));
  };
  option("workers", &flash_decode_options::workers);
  option("senders", &flash_decode_options::senders);
  option("splits", &flash_decode_options::splits);
  const auto field = [&](std::string_view what, auto member, std::int64_t heads = 1) {
    out.push_back(
        fmt::format("flash_decode, {} of {}: {}", what, heads, limit_of([&](std::int64_t value) {
                      flash_decode_problem p{.heads = heads, .kv_heads = heads, .keys = 9};
                      p.*member = value;
                      if (what == "page_size") p.pages = 3;
                      require_sensible(p, 1);
                    })));
  };
  field("batch", &flash_decode_problem::batch);
  field("batch", &flash_decode_problem::batch, 7);
  field("heads", &flash_decode_problem::heads);
  field("head_dim", &flash_decode_problem::head_dim);
  field("keys", &flash_decode_problem::keys);
  field("page_size", &flash_decode_problem::page_size);
  field("pages", &flash_decode_problem::pages);
  for (const float value : {-1.0F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 0.0F, 2.5F}) {
    for (const auto member : {&flash_decode_problem::scale, &flash_decode_problem::logit_cap}) {
      flash_decode_problem p{.keys = 9};
      p.*member = value;
      out.push_back(fmt::format("flash_decode: {}", text_or_refusal([&] {
                                  require_sensible(p, 0);
                                  return describe(p);
                                })));
    }
  }
  for (const flash_decode_problem& p :
       std::vector<flash_decode_problem>{{.heads = 8, .kv_heads = 3, .keys = 9},
                                         {.heads = 2, .kv_heads = 4, .keys = 9},
                                         {.keys = 9, .page_size = 4},
                                         {.keys = 0, .page_size = 4},
                                         {.keys = 9, .page_size = 4, .pages = 1},
                                         {.keys = 9, .partials = dtype::f16}}) {
    out.push_back(fmt::format("flash_decode: {}", text_or_refusal([&] {
                                require_sensible(p, 0);
                                return fmt::format("{} rows, {} pages a sequence",
                                                   cache_extent(p).rows, pages_of_sequence(p));
                              })));
  }
}

TEST(chosen_by_hosts, equals_the_recorded_plans) {
  lines out;
  add_collectives(out);
  add_collectives_of_gpus(out);
  add_limits_of_collectives(out);
  add_gemms(out);
  add_attention(out);
  untax_test::expect_wanted_lines(file, out);
}

}  // namespace
}  // namespace untax
