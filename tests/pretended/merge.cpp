// merge_partial_attention in worlds of GPUs, up to its kernel.
#include <array>
#include <cstdint>

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

constexpr std::int64_t tokens = 3;
constexpr std::int64_t heads = 4;
constexpr std::int64_t head_dim = 64;

TEST(gpu_merge_without_kernels, asks_for_its_kernel_and_runs_it) {
  on_gpus(2, [](world& w) {
    std::array<std::uint16_t, tokens * heads * head_dim> o{};
    std::array<std::uint16_t, tokens * heads * head_dim> out{};
    std::array<float, tokens * heads> lse{};
    std::array<float, tokens * heads> out_lse{};
    for (const bool varying : {false, true}) {
      (void)noted();
      std::uint64_t from = w.state().posted(w.rank());
      merge_partial_attention_options options;
      options.varying_tokens = varying;
      merge_partial_attention op(w, {.tokens = tokens, .heads = heads, .head_dim = head_dim},
                                 options);
      EXPECT_EQ(noted(),
                lines{fmt::format("make merge: tokens 3{}, heads 4 x 64, bf16, rank {} of 2, "
                                  "fused_sequential",
                                  varying ? " at most" : "", w.rank())});
      const lines calls = told(w, from);
      ASSERT_FALSE(calls.empty());
      EXPECT_EQ(calls.back(), "merge_partial_attention: made");
      for (const std::int64_t now : {tokens, std::int64_t{2}}) {
        if (now < tokens && !varying) continue;
        op.run({o.data(), dtype::bf16, now * heads, head_dim}, {lse.data(), dtype::f32, now, heads},
               {out.data(), dtype::bf16, now * heads, head_dim},
               {out_lse.data(), dtype::f32, now, heads}, pretended::a_stream());
        EXPECT_EQ(noted(), lines{fmt::format("merge runs {} {} to {} {}, {} tokens, on a stream",
                                             text_of(o.data()), text_of(lse.data()),
                                             text_of(out.data()), text_of(out_lse.data()), now)});
        EXPECT_EQ(pretended::runs_in_order(), 1);
      }
    }
    EXPECT_EQ(noted(), lines{"merge ends"});
  });
}

}  // namespace
