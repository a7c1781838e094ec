// Caches of two sides, and memory that gives two sectors at once: on a device of one processor, for
// which it can be said by hand what is found where.
#include <gtest/gtest.h>

#include "tests/locality/support.hpp"

namespace untax::locality::test {
namespace {

constexpr double megabyte = 1024 * 1024;

/// A side of 8 MB for the processor, and one beside it.
device one_processor() {
  device d = device_named("h200");
  d.processors = 1;
  d.cache.sides = 2;
  d.cache.bytes = 16 * megabyte;
  d.cache.ways = 512;
  d.sector = 32;
  d.fetch = 64;
  return d;
}

/// Two blocks, one after the other, that read the same rows of 1 KB.
outcome twice(const device& d, double megabytes, bool drifts) {
  const kernel k = kernel::read(
      "title = t\naxis i = 2\nsize rows = 1024\nsteps = rows\n"
      "operand A = rows, 512, 2\nread A = step, 1, 0, 512\nflops = 1\n" +
          std::string(drifts ? "drifts = 1\n" : ""),
      "text", {{"rows", megabytes * 1024}});
  return simulate(k, d, {{0, 1}, {}});
}

class sides : public testing::TestWithParam<bool> {};

TEST_P(sides, a_near_side_answers_the_reads_that_it_holds) {
  const outcome o = twice(one_processor(), 4, GetParam());
  EXPECT_NEAR(o.all.rate(), 0.5, 0.01);
  EXPECT_NEAR(o.near_reads.rate(), 0.5, 0.01);
  EXPECT_NEAR(o.memory_bytes, 4 * megabyte, 0.01 * megabyte);
  EXPECT_NEAR(o.far_bytes, 0, 0.01 * megabyte);
}

TEST_P(sides, the_far_side_has_half_of_the_bytes_beyond_the_near_one) {
  const outcome o = twice(one_processor(), 12, GetParam());
  EXPECT_NEAR(o.near_reads.rate(), 0, 0.01);
  EXPECT_NEAR(o.all.rate(), 0.25, 0.01);
  EXPECT_NEAR(o.far_bytes, 6 * megabyte, 0.3 * megabyte);
  EXPECT_NEAR(o.memory_bytes, 18 * megabyte, 0.3 * megabyte);
}

TEST_P(sides, form_one_cache_on_devices_with_one_side) {
  device d = one_processor();
  d.cache.sides = 1;
  const outcome o = twice(d, 12, GetParam());
  EXPECT_NEAR(o.near_reads.rate(), 0.5, 0.01);
  EXPECT_NEAR(o.all.rate(), 0.5, 0.01);
  EXPECT_EQ(o.far_bytes, 0);
}

/// A block reads the first half of 64 bytes, and then the next one the second half.
TEST_P(sides, memory_gives_two_sectors_at_once) {
  const kernel k = kernel::read(
      "title = t\naxis i = 2\nsteps = 4096\noperand A = 4096, 32, 2\n"
      "read A = step, 1, i * 16, 16\nflops = 1\n" +
          std::string(GetParam() ? "drifts = 1\n" : ""),
      "text", {}, 32);
  device d = one_processor();
  const outcome both = simulate(k, d, {{0, 1}, {}});
  EXPECT_NEAR(both.all.rate(), 0.5, 0.01);
  EXPECT_NEAR(certify(k, d).limit, 0.5, 1e-9);
  d.fetch = 32;
  const outcome single = simulate(k, d, {{0, 1}, {}});
  EXPECT_EQ(single.all.rate(), 0);
  EXPECT_EQ(certify(k, d).limit, 0);
  for (const outcome& o : {both, single}) EXPECT_NEAR(o.memory_bytes, 4096 * 64, 4096);
}

INSTANTIATE_TEST_SUITE_P(kernels, sides, testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "whose_blocks_drift" : "whose_blocks_keep_step";
});

TEST(sides_of_devices, are_read_or_refused) {
  const std::string good = [] {
    for (const named_text& built_in_device : built_in_devices()) {
      if (built_in_device.name == "h200") return built_in_device.text;
    }
    return std::string();
  }();
  const device d = read_device(good, "d");
  EXPECT_EQ(d.cache.sides, 2);
  EXPECT_EQ(d.sector, 32);
  EXPECT_EQ(d.fetch, 64);
  EXPECT_NEAR(d.cache.far_latency, 120e-9, 1e-12);
  const auto with = [&](const std::string& what, const std::string& replacement) {
    return refusal_of_device(good, what, replacement);
  };
  EXPECT_NE(with("\"sides\": 2", "\"sides\": 0").find("from 1 to 64"), std::string::npos);
  EXPECT_NE(with("\"sector\": 32", "\"sector\": 256").find("from 16 to 128"), std::string::npos);
  EXPECT_NE(with("\"bytes_at_once\": 64", "\"bytes_at_once\": 48").find("32 or 64"),
            std::string::npos);
}

}  // namespace
}  // namespace untax::locality::test
