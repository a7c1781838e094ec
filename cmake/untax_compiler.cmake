# Compiler settings of all targets: language level, warnings, sanitizers, launcher.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O3 buys nothing here: the arithmetic is in OpenBLAS, and -O2 compiles faster.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(UNTAX_CCACHE ccache)
if(UNTAX_CCACHE AND PROJECT_IS_TOP_LEVEL)
  # Without the sloppiness, ccache refuses every file that uses precompiled headers. Paths are hashed relative to the
  # checkout, so that a second clone finds the objects of the first one.
  set(ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  set(UNTAX_CCACHE_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache_settings} ${UNTAX_CCACHE})
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # GCC compares the bytes of a header with `#pragma once` with those of the header in a precompiled header, and
    # parses it again if they differ. Without depend mode, ccache serves a precompiled header of headers with other
    # comments or spaces, and remembers it for both modes; so there is a namespace, too.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_NAMESPACE=depend ${ccache_settings} ${UNTAX_CCACHE})
  endif()
endif()

if(UNTAX_NATIVE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()

if(UNTAX_SANITIZE)
  set(sanitize_flags -fsanitize=${UNTAX_SANITIZE} -fno-omit-frame-pointer)
  if(UNTAX_SANITIZE MATCHES "undefined")
    list(APPEND sanitize_flags -fno-sanitize-recover=undefined)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize_flags}>")
  add_link_options(-fsanitize=${UNTAX_SANITIZE})
endif()

# untax_warnings(target) sets the warnings that untax's own code has to pass.
function(untax_warnings target)
  set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
      -Woverloaded-virtual -Wcast-qual)
  # Instrumented code confuses GCC's flow analysis, also inside its own <vector> and <string>.
  if(UNTAX_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND warnings -Wno-maybe-uninitialized -Wno-stringop-overflow)
  endif()
  if(UNTAX_WERROR)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endfunction()
