#include <untax/decoder/shares.hpp>

#include <gtest/gtest.h>

#include "tests/decoder/models.hpp"
#include "tests/errors.hpp"

using untax::errc;
using untax::index_range;
using untax::shares_of;
using untax::weight_shares;

namespace untax_test {
namespace {

/// Ranges of all ranks follow each other without gaps.
void expect_split(std::int64_t& end, const index_range& range) {
  EXPECT_EQ(range.begin, end);
  EXPECT_GT(range.size(), 0);
  end = range.end;
}

TEST(weight_shares, every_row_is_at_one_rank_and_heads_of_keys_where_their_queries_are) {
  for (const int heads : {4, 8, 12}) {
    for (const int kv_heads : {1, 2, 4}) {
      const untax::decoder_config config = parsed(small_model(
          "llama", {{"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}}));
      for (int ranks = 1; ranks <= 4; ++ranks) {
        std::int64_t head = 0;
        std::int64_t column = 0;
        std::int64_t token = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          SCOPED_TRACE(testing::Message()
                       << heads << " " << kv_heads << " " << rank << "/" << ranks);
          const weight_shares share = shares_of(config, rank, ranks);
          expect_split(head, share.heads);
          expect_split(column, share.intermediate);
          expect_split(token, share.vocabulary);
          EXPECT_EQ(share.intermediate.begin % 8, 0);
          // Local heads read local keys as operators have it: h * kv_heads / heads.
          ASSERT_EQ(share.heads.size() % share.kv_heads.size(), 0);
          for (std::int64_t h = 0; h < share.heads.size(); ++h) {
            EXPECT_EQ((share.heads.begin + h) * kv_heads / heads,
                      share.kv_heads.begin + h * share.kv_heads.size() / share.heads.size());
          }
        }
        EXPECT_EQ(head, heads);
        EXPECT_EQ(column, config.intermediate);
        EXPECT_EQ(token, config.vocabulary);
      }
    }
  }
}

TEST(weight_shares, more_ranks_than_heads_are_refused) {
  const untax::decoder_config config =
      parsed(small_model("llama", {{"num_attention_heads", 2}, {"num_key_value_heads", 1}}));
  expect_error(error_of([&] { (void)shares_of(config, 2, 3); }), errc::invalid_argument,
               {"heads", "fewer ranks"});
  expect_error(error_of([&] { (void)shares_of(config, 3, 3); }), errc::invalid_argument,
               {"rank 3"});
}

}  // namespace
}  // namespace untax_test
