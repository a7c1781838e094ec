#pragma once

#include <string_view>

/// Constants that the writer and the reader of traces share.
namespace untax::trace_format {

inline constexpr std::string_view name = "untax-trace";
inline constexpr int number = 1;
/// The process numbers that a world takes up: more than a world has ranks.
inline constexpr int processes_of_world = 256;
/// Thread numbers from this one on are those of named workers.
inline constexpr int first_named = 1 << 20;

}  // namespace untax::trace_format
