#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>
#include <untax/rma/atomic.hpp>
#include <untax/rma/copy.hpp>
#include <untax/rma/signal.hpp>

namespace {

using untax::lone_thread;
using untax::tile_view;

/// Expects invalid_argument with all of `parts` in its text.
void expect_refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "not refused; expected a text with \"" << parts.front() << "\"";
  } catch (const untax::error& e) {
    EXPECT_EQ(e.code(), untax::errc::invalid_argument);
    for (const auto& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

class refusals : public testing::Test {
 protected:
  template <class T>
  T* misaligned() {
    return reinterpret_cast<T*>(bytes_.data() + 1);
  }
  const lone_thread group_{};
  alignas(64) std::array<unsigned char, 256> bytes_{};
  std::array<int, 16> a_{};
  std::array<int, 16> b_{};
};

TEST_F(refusals, null_addresses) {
  int* const null = nullptr;
  expect_refused([&] { untax::put(group_, null, a_.data(), 1); },
                 {"untax::put", "destination is null"});
  expect_refused([&] { untax::get(group_, a_.data(), null, 1); }, {"untax::get", "source is null"});
  expect_refused(
      [&] { untax::copy(group_, tile_view<int>(null, 2, 2), tile_view<int>(a_.data(), 2, 2)); },
      {"untax::copy", "destination is null"});
  expect_refused([&] { untax::signal(group_, nullptr, 1); }, {"untax::signal", "counter is null"});
  expect_refused([&] { untax::signal_add(group_, nullptr, 1); },
                 {"untax::signal_add", "counter is null"});
  expect_refused([&] { untax::atomic_add(null, 1); }, {"untax::atomic_add", "location is null"});
  expect_refused([&] { static_cast<void>(untax::load(null)); },
                 {"untax::load", "location is null"});
}

TEST_F(refusals, counts_whose_bytes_cannot_be_counted) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  EXPECT_NO_THROW(untax::detail::check_count<int>("untax::put", "elements", most));
  EXPECT_NO_THROW(untax::detail::check_count<int>("untax::put", "elements", 0));
  expect_refused([] { untax::detail::check_count<int>("untax::put", "elements", most + 1); },
                 {"untax::put"});
  expect_refused([] { untax::detail::check_count<int>("untax::put", "elements", -1); },
                 {"untax::put"});
}

TEST_F(refusals, tiles_that_share_a_single_byte) {
  unsigned char* const at = bytes_.data() + 64;
  for (const int apart : {-3, 3}) {
    expect_refused(
        [&] {
          untax::copy(group_, tile_view<unsigned char>(at, 1, 4),
                      tile_view<const unsigned char>(at + apart, 1, 4));
        },
        {"overlaps"});
  }
  EXPECT_NO_THROW(untax::copy(group_, tile_view<unsigned char>(at, 1, 4),
                              tile_view<const unsigned char>(at - 4, 1, 4)));
}

TEST_F(refusals, one_thread_is_a_group_of_one) {
  EXPECT_EQ(group_.size(), 1);
  EXPECT_EQ(group_.thread_rank(), 0);
}

TEST_F(refusals, misaligned_addresses) {
  expect_refused([&] { untax::put(group_, misaligned<int>(), a_.data(), 1); },
                 {"misaligned", "multiple of 4"});
  expect_refused([&] { untax::get(group_, a_.data(), misaligned<int>(), 1); },
                 {"source", "multiple of 4"});
  expect_refused([&] { untax::atomic_min(misaligned<double>(), 1.0); },
                 {"untax::atomic_min", "multiple of 8"});
  expect_refused([&] { untax::store(misaligned<std::uint16_t>(), 1); },
                 {"untax::store", "multiple of 2"});
  expect_refused([&] { untax::signal(group_, misaligned<std::uint64_t>(), 1); },
                 {"untax::signal", "multiple of 8"});
}

TEST_F(refusals, overlapping_regions) {
  expect_refused([&] { untax::put(group_, a_.data(), a_.data(), 4); }, {"untax::put", "overlaps"});
  expect_refused([&] { untax::put(group_, a_.data() + 3, a_.data(), 4); }, {"overlaps"});
  expect_refused([&] { untax::put(group_, a_.data(), a_.data() + 3, 4); }, {"overlaps"});
  EXPECT_NO_THROW(untax::put(group_, a_.data() + 4, a_.data(), 4)) << "neighbours do not overlap";
  EXPECT_NO_THROW(untax::put(group_, a_.data(), a_.data() + 4, 4));
}

TEST_F(refusals, sizes_that_make_no_sense) {
  expect_refused([&] { untax::put(group_, a_.data(), b_.data(), -1); }, {"is -1", "from 0 to"});
  expect_refused([&] { untax::put(group_, a_.data(), b_.data(), std::int64_t{1} << 62); },
                 {"number of elements"});
  expect_refused(
      [&] {
        untax::copy(group_, tile_view<int>(a_.data(), 2, 4, 3), tile_view<int>(b_.data(), 2, 4));
      },
      {"row stride of 3", "at least"});
  expect_refused(
      [&] {
        untax::copy(group_, tile_view<int>(a_.data(), 2, 4), tile_view<int>(b_.data(), 4, 2));
      },
      {"2 x 4", "4 x 2", "same shape"});
}

TEST_F(refusals, a_single_row_has_no_stride) {
  b_.fill(9);
  EXPECT_NO_THROW(
      untax::copy(group_, tile_view<int>(a_.data(), 1, 4, 1), tile_view<int>(b_.data(), 1, 4, 1)));
  EXPECT_EQ(a_[3], 9);
}

TEST_F(refusals, nothing_is_written_before_a_refusal) {
  a_.fill(7);
  b_.fill(9);
  expect_refused([&] { untax::put_with_signal(group_, a_.data(), b_.data(), -2, nullptr, 1); },
                 {"untax::put"});
  expect_refused([&] { untax::put(group_, a_.data(), a_.data() + 1, 8); }, {"overlaps"});
  for (const int value : a_) EXPECT_EQ(value, 7);
}

TEST_F(refusals, zero_elements_need_no_address) {
  int* const null = nullptr;
  EXPECT_NO_THROW(untax::put(group_, null, null, 0));
  EXPECT_NO_THROW(untax::copy(group_, tile_view<int>(null, 0, 4), tile_view<int>(null, 0, 4)));
  EXPECT_NO_THROW(untax::copy(group_, tile_view<int>(null, 4, 0), tile_view<int>(null, 4, 0)));
  EXPECT_NO_THROW(untax::copy(group_, tile_view<int>(a_.data(), 2, 2),
                              tile_view<int>(b_.data(), 2, 2), {0, 2}));
}

}  // namespace
