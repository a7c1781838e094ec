// The schema that is kept for an H200 beside what `untax bench spmv` would write for it today, and
// what its guards let through.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <untax/select/features.hpp>
#include <untax/select/table.hpp>

#include "bench/suites/spmv.hpp"
#include "src/core/text_file.hpp"

namespace untax::select {
namespace {

schema kept_schema() {
  const std::string path = UNTAX_SOURCE_DIR "/bench/select/H200/schema.json";
  return read_schema(text_of_file(path), path);
}

std::size_t candidate_of(const schema& s, const std::string& name) {
  for (std::size_t c = 0; c < s.candidates.size(); ++c) {
    if (s.candidates[c].name == name) return c;
  }
  ADD_FAILURE() << "there is no " << name;
  return 0;
}

TEST(kept_schema, equals_the_schema_of_the_benchmark) {
  const schema kept = kept_schema();
  EXPECT_EQ(to_json(kept), to_json(bench::schema_of_table(kept.title, true)));
}

TEST(kept_schema, knows_rows_are_no_longer_than_there_are_columns) {
  const schema kept = kept_schema();
  const feature_set features(kept);
  const std::size_t by_warp = candidate_of(kept, "csr_warp32");
  EXPECT_TRUE(features.allows(by_warp, features.complete(std::vector{1e6, 8300.0, 1e5})));
  EXPECT_FALSE(features.allows(by_warp, features.complete(std::vector{1e6, 8500.0, 1e5})));
  EXPECT_TRUE(features.allows(by_warp, features.complete(std::vector{1e6, 1e6, 8000.0})));
}

/// What is known cannot rule long rows out for most inputs, and mixed lanes are only slow there.
TEST(kept_schema, allows_mixed_lanes_while_the_longest_row_is_unknown) {
  const schema kept = kept_schema();
  const feature_set features(kept);
  for (const char* name : {"csr_mixed4", "csr_mixed16"}) {
    const std::size_t mixed = candidate_of(kept, name);
    EXPECT_TRUE(features.allows(mixed, features.complete(std::vector{1e6, 1e6, 1e6}))) << name;
    EXPECT_FALSE(
        features.allows(mixed, features.complete(std::vector{1e6, 1e6, 1e6, 0.0, 5e5, 1.0, 2e6})))
        << name;
  }
}

TEST(kept_schema, gives_short_rows_blocks_only_where_there_are_few) {
  const schema kept = kept_schema();
  const feature_set features(kept);
  const std::size_t by_block = candidate_of(kept, "csr_block");
  EXPECT_TRUE(features.allows(by_block, features.complete(std::vector{2112.0, 1e5, 5000.0})));
  EXPECT_FALSE(features.allows(by_block, features.complete(std::vector{2113.0, 1e5, 5000.0})));
  EXPECT_TRUE(features.allows(by_block, features.complete(std::vector{1e6, 1e5, 32e6})));
  EXPECT_FALSE(features.allows(by_block, features.complete(std::vector{1e6, 1e5, 31e6})));
  EXPECT_TRUE(features.allows(by_block, features.complete(std::vector{0.0, 1e5, 0.0})));
}

}  // namespace
}  // namespace untax::select
