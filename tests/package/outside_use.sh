#!/usr/bin/env bash
# Installs the build that the command is of, and uses it as a stranger would: with pkg-config and a compiler that shows
# all warnings, and with CMake.
set -euo pipefail
# shellcheck source=tests/package/build_folder.bash
source "$(dirname "$0")/build_folder.bash"

if ! cmake --install "$build" --prefix "$folder/installed" >"$folder/log" 2>&1; then
  tail -5 "$folder/log"
  exit 1
fi
for file in include/untax/untax.hpp include/untax/untax.h include/untax/c/world.h bin/untax share/untax/models/llama-3.2-1b.json; do
  [ -f "$folder/installed/$file" ] || wrong "$file is not installed"
done
[ "$(find models -name '*.json' | wc -l)" -eq "$(find "$folder/installed/share/untax/models" -name '*.json' | wc -l)" ] ||
  wrong "not every model is installed"

installed=$(cd "$folder/installed/include" && find . -type f | sort)
public=$(cd include && find . -name '*.h' -o -name '*.hpp' -o -name '*.cuh' | sort)
[ "$installed" = "$public" ] || wrong "other headers are installed than the public ones: $(diff <(echo "$public") <(echo "$installed"))"

cat >"$folder/program.cpp" <<'TEXT'
#include <cstdio>

#include <untax/untax.hpp>

int main() {
  untax::run_threads(2, [](untax::world& w) {
    const auto box = w.allocate<int>(8, "box");
    for (int i = 0; i < 8; ++i) *box.local(i) = 0;
    w.barrier();
    const int value = 40 + w.rank();
    untax::put(untax::lone_thread{}, box.at(1 - w.rank(), 3), &value, 1);
    w.barrier();
    if (w.rank() == 0) std::printf("%d\n", *box.local(3));
    w.barrier();
  });
}
TEXT
# Every header is included, since none of them may cause warnings.
find include -name '*.hpp' -printf '#include <%P>\n' | sort >"$folder/headers.cpp"
cat "$folder/program.cpp" >>"$folder/headers.cpp"

compiler=$(cached CMAKE_CXX_COMPILER)
sanitize=$(cached UNTAX_SANITIZE)
flags=()
[ -z "$sanitize" ] || flags+=("-fsanitize=$sanitize")
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$folder/installed/lib/pkgconfig:$folder/installed/lib64/pkgconfig
  models=$(pkg-config --variable=modelsdir untax)
  [ -f "$models/llama-3.2-1b.json" ] || wrong "modelsdir is '$models', where no models are"
  read -r -a cflags <<<"$(pkg-config --cflags untax)"
  read -r -a libs <<<"$(pkg-config --libs untax)"
  if "$compiler" -std=c++20 "${flags[@]}" "${cflags[@]}" "$folder/program.cpp" "${libs[@]}" -o "$folder/program" \
    2>"$folder/log"; then
    said=$("$folder/program")
    [ "$said" = 41 ] || wrong "the program says '$said', should be 41"
  else
    head -20 "$folder/log"
    wrong "pkg-config --libs does not link"
  fi
  read -r -a libs <<<"$(pkg-config --libs untax_select)"
  "$compiler" -std=c++20 "${flags[@]}" "${cflags[@]}" examples/09_selector/selector.cpp "${libs[@]}" -o "$folder/selector" \
    2>"$folder/log" || wrong "pkg-config --libs untax_select does not link: $(head -5 "$folder/log")"
  for level in -O2 -O3; do
    as_system=("${cflags[@]/#-I/-isystem}")
    "$compiler" -std=c++20 "$level" -Wall -Wextra "${as_system[@]}" -c "$folder/headers.cpp" -o "$folder/headers.o" \
      2>"$folder/log" || wrong "the headers do not compile with $level"
    if grep -q 'warning:' "$folder/log"; then
      grep 'warning:' "$folder/log"
      wrong "the headers warn with $level -Wall through -isystem"
    fi
  done
else
  echo "pkg-config is not here"
fi

# The C ABI, with all warnings of C, by the name of its library alone.
if "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$folder/installed/include" examples/08_in_c/in_c.c \
  -L"$(dirname "$(find "$folder/installed" -name libuntax_c.so)")" -luntax_c -pthread "${flags[@]}" -o "$folder/in_c" \
  2>"$folder/log"; then
  said=$(LD_LIBRARY_PATH=$(dirname "$(find "$folder/installed" -name libuntax_c.so)") "$folder/in_c" | grep -c 'c\[0\] is 512') ||
    true
  [ "$said" = 4 ] || wrong "of the ranks in C $said have the result, should be 4"
else
  head -20 "$folder/log"
  wrong "the example in C does not compile"
fi

mkdir "$folder/project"
cp "$folder/program.cpp" examples/09_selector/selector.cpp "$folder/project"
cat >"$folder/project/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES CXX)
find_package(untax REQUIRED)
add_executable(outside program.cpp)
target_link_libraries(outside PRIVATE untax::untax)
add_executable(selector selector.cpp)
target_link_libraries(selector PRIVATE untax::untax_select)
foreach(library files locality measure sparse)
  if(NOT TARGET untax::untax_${library})
    message(FATAL_ERROR "untax::untax_${library} is not installed")
  endif()
endforeach()
TEXT
if cmake -S "$folder/project" -B "$folder/project/build" -D "CMAKE_PREFIX_PATH=$folder/installed" \
  -D "CMAKE_CXX_COMPILER=$compiler" -D "CMAKE_CXX_FLAGS=${flags[*]-}" >"$folder/log" 2>&1 &&
  cmake --build "$folder/project/build" >>"$folder/log" 2>&1; then
  said=$("$folder/project/build/outside")
  [ "$said" = 41 ] || wrong "the program made with CMake says '$said', should be 41"
else
  tail -20 "$folder/log"
  wrong "find_package(untax) does not do"
fi

if ((failures > 0)); then exit 1; fi
echo "installed and used from outside: all right"
