// Texts that describe kernels, what is made of them, and orders of their blocks.
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <untax/locality/emit.hpp>

#include "tests/locality/support.hpp"

namespace untax::locality::test {
namespace {

constexpr const char* small =
    "size n = 40\naxis y = n / 10\naxis x = 3\nsteps = 5\n"
    "operand A = n, 50, 4\nread A = y * 10, 10, step * 10, 10\n";

TEST(kernels, are_read) {
  const kernel k = kernel::read(small, "small", {{"n", 80}});
  EXPECT_EQ(k.blocks(), 24);
  EXPECT_EQ(k.steps(7), 5);
  EXPECT_EQ(k.coordinates(7), (std::vector<int>{2, 1}));
  // 10 columns of 4 bytes are no line; four times as many are.
  EXPECT_EQ(k.operands()[0].granule_columns, 40);
  EXPECT_EQ(k.operands()[0].granule_rows, 10);
}

TEST(kernels, refuse_impossible_descriptions_with_the_line) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "there is no axis"},
      {"axis x = 3\n", "nothing is read"},
      {"axis x = 3\nread A = 0, 1, 0, 1\n", "k:2: there is no operand A"},
      {"axis x\n", "k:1: \"axis x\" has no ="},
      {"axis = 3\n", "k:1: axis needs a name"},
      {"axis x = nothing\n", "k:1: "},
      {"axis x = 1e9\n", "k:1: axis x has 1000000000 places"},
      {"axis x = 0\n", "k:1: axis x has 0 places"},
      {"size x = 3\naxis x = 3\n", "k:2: x is declared twice"},
      {"axis step = 3\n", "k:1: the name step is reserved"},
      {"axes x = 3\n", "k:1: \"axes\" does not begin a line"},
      {"axis x = 3\noperand A = 3, 4\n", "k:2: operand A needs rows"},
      {"axis x = 3\noperand A = 3, 4, 0\n", "k:2: 0 is 0; it has to be a whole number"},
      {"axis x = 3\noperand A = 300, 4, 4\nsteps = 99\nread A = step / 2, 1, 0, 4\n",
       "k:4: step / 2 has to advance by the same whole number with each step, and sizes may not "
       "change with steps, if there are more than 64 steps"},
      {"axis x = 3\noperand A = 3, 4, 4\nread A = x, 1, 0, 4, 0.5\n", "k:3: 0.5 is 0.5; the step"},
      {"axis x = 3\noperand A = 3, 4, 4\nonce A = x, 1, 0, 4, 1\n", "k:3: once A needs row"},
      {"axis x = 3\noperand A = 3, 4, 4\nread A = x / 0, 1, 0, 4\n", "k:3: x / 0 is"},
      {"axis x = 3\noperand A = 3, 4, 4\nread A = x, 0 - 1, 0, 4\n", "k:3: 0 - 1 is -1"},
      {"axis x = 3\nafter = x, x\n", "k:2: after has 2 places"},
      {"axis x = 3\nresident = 0\n", "k:2: resident has to be"},
      {"axis x y = 3\n", "k:1: the word \"y\" before the = is one too many"},
      {"axis x = 16777216\naxis y = 4\noperand A = 3, 4, 4\nread A = x, 1, 0, 4\n",
       "k: 67108864 blocks"},
      {"axis x = 3\noperand A = 10000000, 10000000, 8\nread A = x, 1, 0, 1\n", "pieces"},
  };
  for (const auto& [text, says] : wrong) {
    const std::string why = refusal([&, given = text] { (void)kernel::read(given, "k", {}); });
    EXPECT_NE(why.find(says), std::string::npos) << text << " -> " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
  EXPECT_NE(refusal([] {
              (void)kernel::read(small, "k", {{"m", 3}});
            }).find("its sizes are n"),
            std::string::npos);
}

TEST(kernels, whose_texts_are_damaged_are_read_or_refused_in_one_line) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (const named_text& text : built_in_kernels()) {
    for (int i = 0; i < 60; ++i) {
      std::string damaged = text.text;
      for (std::uint64_t edits = random() % 4 + 1; edits > 0; --edits) {
        const std::size_t at = random() % damaged.size();
        const std::uint64_t kind = random() % 4;
        if (kind == 0) damaged[at] = static_cast<char>(random() % 256);
        if (kind == 1) damaged.erase(at, random() % 8);
        if (kind == 2) damaged.insert(at, damaged.substr(random() % damaged.size(), 5));
        if (kind == 3) damaged.resize(at);
        if (damaged.empty()) damaged = "=";
      }
      const std::string why = refusal([&] { (void)kernel::read(damaged, "k", {}); });
      EXPECT_EQ(why.find('\n'), std::string::npos) << why << "\n" << damaged;
      EXPECT_LT(why.size(), 500U) << why;
      EXPECT_FALSE(why.starts_with("another code")) << why << "\n" << damaged;
    }
  }
}

TEST(kernels, that_are_built_in_can_be_simulated_in_any_order) {
  std::mt19937_64 random(7);
  for (const named_text& text : built_in_kernels()) {
    SCOPED_TRACE(text.name);
    kernel::sizes small_ones;
    const kernel large = kernel_named(text.name, {});
    for (const auto& [name, value] : large.all_sizes()) {
      if (value > 2048) small_ones[name] = 2048;
    }
    const kernel k = kernel_named(text.name, small_ones);
    const device d = device_named("mi300x");
    const outcome o = simulate(k, d, {shuffled(k.blocks(), random), {}});
    EXPECT_GT(o.all.requested, 0);
    EXPECT_GE(o.all.rate(), 0);
    EXPECT_LE(o.all.rate(), 1);
    EXPECT_GT(o.seconds, 0);
    EXPECT_EQ(o.blocks, k.blocks());
  }
}

/// A convolution of 3 x 3: each step reads the rows and columns of one of its nine places.
TEST(kernels, may_have_steps_that_advance_unevenly) {
  const kernel k = kernel::read(
      "axis y = 4\nsteps = 9\noperand A = 18, 34, 4\n"
      "read A = y * 4 + floor(step / 3), 4, mod(step, 3), 32\n",
      "k", {});
  const std::vector<access> accesses = k.accesses(2);
  ASSERT_EQ(accesses.size(), 9U);
  for (int step = 0; step < 9; ++step) {
    const access& a = accesses[static_cast<std::size_t>(step)];
    EXPECT_EQ(a.when, moment::given_step);
    EXPECT_EQ(a.given_step, step);
    EXPECT_EQ(a.row, 8 + step / 3);
    EXPECT_EQ(a.column, step % 3);
  }
}

TEST(kernels, read_at_a_given_step) {
  const kernel k = kernel::read(
      "axis y = 4\nsteps = 3\noperand A = 4, 64, 2\noperand B = 1, 64, 2\n"
      "read A = y, 1, 0, 64\nread B = 0, 1, 0, 64, 1\n",
      "k", {});
  const outcome o = simulate(k, device_named("h200"), {{0, 1, 2, 3}, {}});
  EXPECT_EQ(o.operands[0].requested, 4 * 3 * 128);
  EXPECT_EQ(o.operands[1].requested, 4 * 128);
}

/// Two rows of tiles far enough apart in memory are in one channel of a cache, beside each other in
/// all of them.
TEST(kernels, with_lines_find_them_in_the_channels_of_their_addresses) {
  device d = device_named("mi300x");
  d.domains = 1;
  d.last_level.reset();
  const auto again = [&](const char* pitch) {
    // 8192 lines, twice: those of a column of lines, or those of whole rows.
    const kernel k = kernel::read(
        std::string("axis i = 2\nlines = 1\noperand A = 8192, 2048, 2\nread A = ") + pitch + "\n",
        "k", {}, d.sector);
    EXPECT_TRUE(k.has_lines());
    return simulate(k, d, {{0, 1}, {}}).all.rate();
  };
  EXPECT_LT(again("0, 8192, 0, 64"), 0.01);
  EXPECT_GT(again("0, 256, 0, 1984"), 0.49);
}

/// Of a line that is written, counters see two requests: one that misses, and one that hits.
TEST(kernels, count_writes_as_counters_do) {
  const device d = device_named("mi300x");
  const kernel k = kernel::read(
      "axis y = 64\noperand A = 64, 1024, 2\noperand B = 64, 1024, 2\n"
      "read A = y, 1, 0, 1024\nwrite B = y, 1, 0, 1024\n",
      "k", {}, d.sector);
  std::vector<int> blocks(64);
  std::iota(blocks.begin(), blocks.end(), 0);
  const outcome o = simulate(k, d, {blocks, {}});
  EXPECT_EQ(o.all.rate(), 0);
  EXPECT_EQ(o.counted.requested, 64 * 16 * 3);
  EXPECT_NEAR(o.counted.rate(), 1.0 / 3, 1e-9);
  EXPECT_EQ(simulate(k, device_named("h200"), {blocks, {}}).counted.requested, 0);
}

/// The domains that are not simulated work at the same time as those that are.
TEST(kernels, simulated_on_some_domains_take_the_time_of_all) {
  const device d = device_named("mi300x");
  ASSERT_EQ(d.domains, 8);
  for (const char* name : {"gemm", "attention"}) {
    const kernel k = kernel_named(name, std::string(name) == "gemm"
                                            ? kernel::sizes{{"m", 8192}, {"n", 8192}, {"k", 1024}}
                                            : kernel::sizes{{"heads", 64}, {"keys", 2048}});
    std::vector<int> blocks(static_cast<std::size_t>(k.blocks()));
    std::iota(blocks.begin(), blocks.end(), 0);
    const outcome whole = simulate(k, d, {blocks, {}}, {.domains = 8});
    for (const int domains : {1, 2, 4}) {
      const outcome part = simulate(k, d, {blocks, {}}, {.domains = domains});
      EXPECT_NEAR(part.seconds / whole.seconds, 1, 0.1) << name << " " << domains;
      EXPECT_NEAR(part.compute_seconds / whole.compute_seconds, 1, 0.1) << name << " " << domains;
    }
  }
}

TEST(kernels, read_the_same_bytes_with_larger_steps) {
  const device d = device_named("mi300x");
  const kernel fine = kernel_named("gemm", {{"m", 4096}, {"n", 4096}, {"k", 4096}});
  const kernel coarse = fine.coarsened(8);
  std::vector<int> blocks(static_cast<std::size_t>(fine.blocks()));
  std::iota(blocks.begin(), blocks.end(), 0);
  const outcome a = simulate(fine, d, {blocks, {}});
  const outcome b = simulate(coarse, d, {blocks, {}});
  EXPECT_NEAR(a.all.requested, b.all.requested, 1);
  EXPECT_NEAR(a.all.rate(), b.all.rate(), 0.01);
}

TEST(kernels, miss_each_piece_once_in_a_cache_that_holds_all) {
  device d = device_named("h200");
  d.cache.bytes *= 1000;
  for (const char* name : {"gemm", "transpose", "stencil2d", "attention"}) {
    const kernel k = kernel_named(name, std::string(name) == "attention"
                                            ? kernel::sizes{{"heads", 3}, {"keys", 2048}}
                                            : kernel::sizes{{"m", 1024}, {"n", 512}});
    std::vector<int> blocks(static_cast<std::size_t>(k.blocks()));
    std::iota(blocks.begin(), blocks.end(), 0);
    EXPECT_NEAR(simulate(k, d, {blocks, {}}).all.rate(), certify(k, d).compulsory, 1e-6) << name;
  }
}

TEST(kernels, all_their_orders_are_bijections_that_can_be_written) {
  for (const char* name : {"gemm", "attention", "smith_waterman", "spmv"}) {
    const kernel k = kernel_named(
        name, std::string(name) == "attention"
                  ? kernel::sizes{{"heads", 6}, {"kv_heads", 3}, {"keys", 1280}, {"causal", 1}}
              : std::string(name) == "spmv" ? kernel::sizes{{"n", 25600}}
                                            : kernel::sizes{{"m", 3328}, {"n", 2560}});
    for (const block_order& order : order_space(k, 8)) {
      std::vector<bool> seen(static_cast<std::size_t>(k.blocks()));
      for (int p = 0; p < k.blocks(); ++p) {
        const int block = order.block(p);
        ASSERT_TRUE(block >= 0 && block < k.blocks()) << order.name;
        ASSERT_FALSE(seen[static_cast<std::size_t>(block)]) << order.name;
        seen[static_cast<std::size_t>(block)] = true;
        ASSERT_EQ(order.position(block), p) << order.name;
      }
      EXPECT_NE(to_cpp(order, k).find("block_of"), std::string::npos);
      EXPECT_NE(to_triton(order, k).find("def block_of"), std::string::npos);
      for (int block = 0; block < k.blocks(); ++block) {
        for (const int needed : k.needs(block))
          ASSERT_LT(order.position(needed), order.position(block)) << order.name;
      }
    }
  }
}

TEST(kernels, operands_whose_bytes_cannot_be_counted_are_refused) {
  const auto said = [](const std::string& sizes) {
    return refusal([&] {
      (void)kernel::read("axis i = 4\noperand x = " + sizes + "\nread x = i, 1, 0, 1\n", "k", {},
                         128);
    });
  };
  EXPECT_EQ(said("1024, 1024, 2"), "");
  EXPECT_EQ(
      said("1e12, 1e12, 4096"),
      "k:2: operand x of 1000000000000 x 1000000000000 elements has 4.1e+27 bytes; it may have "
      "at most 1e+15");
}

TEST(devices, refuse_impossible_descriptions) {
  const std::string good = built_in_devices().front().text;
  EXPECT_EQ(refusal([&] { (void)read_device(good, "d"); }), "");
  const auto with = [&](const std::string& what, const std::string& replacement) {
    return refusal_of_device(good, what, replacement);
  };
  EXPECT_NE(with("\"domains\": 1", "\"domains\": 0").find("from 1 to 1024"), std::string::npos);
  EXPECT_NE(with("\"domains\": 1", "\"domains\": 1.5").find("whole"), std::string::npos);
  EXPECT_NE(with("\"domains\"", "\"domain\"").find("no field \"domain\""), std::string::npos);
  EXPECT_NE(with("\"memory\"", "\"memori\"").find("no field \"memori\""), std::string::npos);
  EXPECT_NE(with("{", "[").find("not JSON"), std::string::npos);
  EXPECT_NE(with("\"domains\": 1", "\"domains\": 1e400").find("1e400 is not finite"),
            std::string::npos);
  EXPECT_EQ(with("\"domains\": 1", "\"domains\": 1e400").find("exception"), std::string::npos);
  EXPECT_NE(refusal([] { (void)read_device("[]", "d"); }).find("object"), std::string::npos);
}

}  // namespace
}  // namespace untax::locality::test
