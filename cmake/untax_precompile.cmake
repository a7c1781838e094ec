# Headers that most sources of the libraries include, and that take most of their time, are parsed once. No header is here
# that few include: each source pays for the inline functions of those that are. CLI11 and nlohmann/json are not, for a source
# with one of them takes two seconds longer, or half a second, also if it uses nothing of it.
#
# The release build that test.sh makes does without, so that a missing #include is an error there.
option(UNTAX_PRECOMPILE "Parse the headers that most sources of the libraries include once for all" ON)

# untax_precompile() does so for the libraries.
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

# untax_reuse_headers(target) does so for another target, which has to be compiled as position-independent code of libraries.
function(untax_reuse_headers target)
  if(UNTAX_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM untax)
  endif()
endfunction()
