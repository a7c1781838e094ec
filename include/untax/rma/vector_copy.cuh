#pragma once

#include <cstddef>
#include <cstdint>

#include <untax/rma/device_group.cuh>

// Device verbs move bytes in the widest words for which both sides are aligned, each thread with
// several loads in flight before its first store. A load from a peer takes long, and only loads in
// flight keep the link busy.

namespace untax::detail {

/// Words that a thread loads before it stores the first one: as many as a block of 1024 threads,
/// with 64 registers a thread, has registers for.
inline constexpr int words_in_flight = 8;
/// As `words_in_flight`, for rows, which need registers for addresses.
inline constexpr int row_words_in_flight = 4;

template <int bytes>
struct word_of;
template <>
struct word_of<1> {
  using type = std::uint8_t;
};
template <>
struct word_of<2> {
  using type = std::uint16_t;
};
template <>
struct word_of<4> {
  using type = std::uint32_t;
};
template <>
struct word_of<8> {
  using type = uint2;
};
template <>
struct word_of<16> {
  using type = uint4;
};

/// The places of the words of one side of a tile, in the order in which a thread takes them: every
/// `step`th, row after row. `at` advances by whole rows and columns, so that a step needs no
/// division.
struct word_walk {
  const std::byte* at;
  std::int32_t column;

  struct pace {
    std::int64_t bytes;       // bytes from one word of the thread to its next, within a row
    std::int64_t wrap;        // bytes to add where the next row begins
    std::int32_t columns;     // words to the right
    std::int32_t row_length;  // in words
  };
  __device__ void advance(const pace& p) {
    at += p.bytes;
    column += p.columns;
    if (column >= p.row_length) {
      column -= p.row_length;
      at += p.wrap;
    }
  }
};

/// One side of a tile, in bytes.
struct byte_rows {
  const std::byte* data;
  std::int64_t stride;

  [[nodiscard]] __device__ word_walk walk(std::int64_t row, std::int32_t column,
                                          int word) const noexcept {
    return {data + row * stride + std::int64_t{column} * word, column};
  }
  [[nodiscard]] __device__ word_walk::pace pace(std::int64_t rows, std::int32_t columns,
                                                std::int32_t row_length, int word) const noexcept {
    return {rows * stride + std::int64_t{columns} * word, stride - std::int64_t{row_length} * word,
            columns, row_length};
  }
};

/// Returns `value`, but hides from the compiler that it is unchanged. So values derived from it are
/// computed where they are needed, instead of being kept in registers from before the caller's
/// loops, where they would not fit.
[[nodiscard]] __device__ inline std::int32_t afresh(std::int32_t value) noexcept {
  asm volatile("" : "+r"(value));
  return value;
}

/// Fetches and delivers the `left` remaining words of a thread in batches: of `most` words, then of
/// half of that, and so on. There is no division here (one of 64 bits is a call that spills
/// registers), and no condition for each word.
template <int most, class Word, class Fetch, class Deliver>
__device__ void in_batches(std::int64_t left, std::int32_t step, const Fetch& fetch,
                           const Deliver& deliver) {
  const std::int64_t whole = std::int64_t{step} * (most - 1);
  while (left > whole) {
    Word held[most];
#pragma unroll
    for (int i = 0; i < most; ++i) held[i] = fetch();
#pragma unroll
    for (int i = 0; i < most; ++i) deliver(held[i]);
    left -= whole + step;
  }
  if constexpr (most > 1) in_batches<most / 2, Word>(left, step, fetch, deliver);
}

/// Moves the words first, first + step, first + 2 step, ... of `count`.
template <int bytes, int most>
__device__ void move_words(std::byte* to, const std::byte* from, std::int64_t count,
                           std::int32_t first, std::int32_t step) {
  using word = typename word_of<bytes>::type;
  first = afresh(first);
  step = afresh(step);
  const std::byte* source = from + std::int64_t{first} * bytes;
  std::byte* target = to + std::int64_t{first} * bytes;
  const std::int32_t pace = step * bytes;
  const auto fetch = [&] {
    const word w = *reinterpret_cast<const word*>(source);
    source += pace;
    return w;
  };
  const auto deliver = [&](const word& w) {
    *reinterpret_cast<word*>(target) = w;
    target += pace;
  };
  in_batches<most, word>(count - first, step, fetch, deliver);
}

/// As move_words, for `rows` rows of `row_length` words each.
template <int bytes>
__device__ void move_word_rows(byte_rows to, byte_rows from, std::int64_t rows,
                               std::int32_t row_length, std::int32_t first, std::int32_t step) {
  using word = typename word_of<bytes>::type;
  row_length = afresh(row_length);
  first = afresh(first);
  step = afresh(step);
  const std::int64_t count = rows * row_length;
  word_walk source = from.walk(first / row_length, first % row_length, bytes);
  word_walk target = to.walk(first / row_length, first % row_length, bytes);
  const auto source_pace = from.pace(step / row_length, step % row_length, row_length, bytes);
  const auto target_pace = to.pace(step / row_length, step % row_length, row_length, bytes);
  const auto fetch = [&] {
    const word w = *reinterpret_cast<const word*>(source.at);
    source.advance(source_pace);
    return w;
  };
  const auto deliver = [&](const word& w) {
    *reinterpret_cast<word*>(const_cast<std::byte*>(target.at)) = w;
    target.advance(target_pace);
  };
  in_batches<row_words_in_flight, word>(count - first, step, fetch, deliver);
}

/// Moves fewer than 16 bytes, element by element.
template <int narrowest>
__device__ void move_edge(std::byte* to, const std::byte* from, std::int64_t bytes,
                          std::int32_t first, std::int32_t step) {
  using word = typename word_of<narrowest>::type;
  for (std::int32_t i = first; i < static_cast<std::int32_t>(bytes) / narrowest; i += step)
    reinterpret_cast<word*>(to)[i] = reinterpret_cast<const word*>(from)[i];
}

/// The same, for the bytes [begin, end) of each row.
template <int narrowest>
__device__ void move_row_edges(byte_rows to, byte_rows from, std::int64_t rows, share bytes,
                               std::int32_t first, std::int32_t step) {
  if (bytes.begin == bytes.end) return;
  for (std::int64_t row = first; row < rows; row += step) {
    std::byte* target = const_cast<std::byte*>(to.data) + row * to.stride + bytes.begin;
    move_edge<narrowest>(target, from.data + row * from.stride + bytes.begin,
                         bytes.end - bytes.begin, 0, 1);
  }
}

/// The width of the widest word, from `narrowest` to 16 bytes, that divides all of `places`.
template <int narrowest>
[[nodiscard]] __device__ int widest_word(std::uint64_t places) noexcept {
  if (places % 16 == 0) return 16;
  if (places % 8 == 0) return 8;
  if (places % 4 == 0) return 4;
  if (places % 2 == 0) return 2;
  return narrowest;
}

/// Calls `body.template operator()<bytes>()` for the width `bytes`, which is at least `narrowest`.
template <int narrowest, class Body>
__device__ void with_word(int bytes, const Body& body) {
  if (bytes == 16) {
    body.template operator()<16>();
    return;
  }
  if constexpr (narrowest <= 8) {
    if (bytes == 8) {
      body.template operator()<8>();
      return;
    }
  }
  if constexpr (narrowest <= 4) {
    if (bytes == 4) {
      body.template operator()<4>();
      return;
    }
  }
  if constexpr (narrowest <= 2) {
    if (bytes == 2) {
      body.template operator()<2>();
      return;
    }
  }
  if constexpr (narrowest == 1) body.template operator()<1>();
}

}  // namespace untax::detail
