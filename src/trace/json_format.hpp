#pragma once

#include <string_view>

/// What the writer and the reader of traces agree on.
namespace untax::trace_format {

inline constexpr std::string_view name = "untax-trace";
inline constexpr int number = 1;
/// Numbers of processes that a world takes: more than a world has ranks.
inline constexpr int processes_of_world = 256;
/// Numbers of threads from here on are of workers that have names.
inline constexpr int first_named = 1 << 20;

}  // namespace untax::trace_format
