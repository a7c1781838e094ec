# The headers that most sources of the libraries include, and whose parsing takes most of the compile time, are parsed
# once. Headers that few sources include are not listed here: each source pays for the inline functions of all listed
# headers. So CLI11 and nlohmann/json are not listed: a source with one of them takes two seconds longer, or half a
# second, even if it uses nothing of it.
#
# The release build of test.sh does without precompiled headers, so that a missing #include is an error there.
option(UNTAX_PRECOMPILE "Parse the headers that most sources of the libraries include once for all" ON)

# untax_precompile() parses these headers once for the libraries.
function(untax_precompile)
  if(NOT UNTAX_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(untax PRIVATE
    <fmt/format.h>
    <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <filesystem> <functional> <map> <memory> <mutex>
    <numeric> <optional> <ranges> <span> <stdexcept> <string> <thread> <unordered_map> <utility> <variant> <vector>
    <untax/world/world.hpp> <untax/tile/program.hpp>)
  foreach(library IN LISTS UNTAX_LIBRARIES)
    if(NOT library STREQUAL "untax")
      untax_reuse_headers(${library})
    endif()
  endforeach()
endfunction()

# untax_reuse_headers(target) uses them for another target, which has to be compiled as position-independent code of
# libraries.
function(untax_reuse_headers target)
  if(UNTAX_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM untax)
  endif()
endfunction()
