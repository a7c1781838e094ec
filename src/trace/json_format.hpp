#pragma once

#include <cstddef>
#include <string_view>

/// Constants that the writer and the reader of traces share.
namespace untax::trace_format {

inline constexpr std::string_view name = "untax-trace";
inline constexpr int number = 1;
/// The process numbers that a world takes up: more than a world has ranks.
inline constexpr int processes_of_world = 256;
/// The most bytes of a document.
inline constexpr std::size_t most_bytes = std::size_t{2} << 30;
/// Thread numbers from this one on are those of named workers.
inline constexpr int first_named = 1 << 20;

}  // namespace untax::trace_format
