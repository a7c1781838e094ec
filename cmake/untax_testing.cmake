# How tests are registered: one ctest test for each program, with a time limit and a label.
# GoogleTest writes an XML file for each program, from which test.sh counts the single cases.
set(UNTAX_TEST_TIMEOUT 1500 CACHE STRING "Seconds after which a test program is stopped")
set(UNTAX_TEST_SCALE 1 CACHE STRING "How much slower than a release build tests run, and so how much less some do")
set(UNTAX_TEST_FLAGS "" CACHE STRING "Compiler flags for test programs only")
set(UNTAX_RESULTS_DIR ${PROJECT_BINARY_DIR}/results)

# ThreadSanitizer of GCC 12 and clang 14 refuses to start under more than 28 random address bits.
set(UNTAX_TEST_LAUNCHER "")
if(UNTAX_SANITIZE MATCHES "thread" AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits random_bits)
  find_program(UNTAX_SETARCH setarch)
  if(UNTAX_SETARCH AND random_bits GREATER 28)
    set(UNTAX_TEST_LAUNCHER ${UNTAX_SETARCH} -R)
  endif()
endif()

# untax_register(name LABEL label [SERIAL] COMMAND program argument...)
function(untax_register name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "LABEL" "COMMAND")
  add_test(NAME ${name} COMMAND ${UNTAX_TEST_LAUNCHER} ${arg_COMMAND}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(environment
    UNTAX_TEST_SCALE=${UNTAX_TEST_SCALE}
    GTEST_OUTPUT=xml:${UNTAX_RESULTS_DIR}/${name}.xml
    TSAN_OPTIONS=halt_on_error=1
    ASAN_OPTIONS=detect_stack_use_after_return=1
    UBSAN_OPTIONS=print_stacktrace=1)
  set_tests_properties(${name} PROPERTIES
    LABELS ${arg_LABEL}
    TIMEOUT ${UNTAX_TEST_TIMEOUT}
    RUN_SERIAL ${arg_SERIAL}
    SKIP_RETURN_CODE 77
    ENVIRONMENT "${environment}")
endfunction()

# untax_test_options(target) compiles a test program quickly: no test measures speed.
function(untax_test_options target)
  separate_arguments(flags UNIX_COMMAND "${UNTAX_TEST_FLAGS}")
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${flags}>")
  target_link_libraries(${target} PRIVATE untax_measure untax_decoder untax_locality untax_files GTest::gtest)
  untax_warnings(${target})
endfunction()

# The headers that cost most of a test's compile time, compiled once for all tests. Few tests read JSON, and each would compile
# inline functions of nlohmann/json.
function(untax_add_test_headers)
  untax_add_library(untax_test_headers)
  untax_test_options(untax_test_headers)
  # Precompiled headers are used by programs, so they are compiled as programs are.
  set_target_properties(untax_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(untax_test_headers PRIVATE -fPIE)
  target_precompile_headers(untax_test_headers PRIVATE
    <gtest/gtest.h> <fmt/format.h> <random> <thread> <vector>)
endfunction()

# untax_add_test(name LABEL label [SERIAL] SOURCES file... [LINK library...]) makes a GoogleTest program.
function(untax_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "LABEL" "SOURCES;LINK")
  set(target ${name}_test)
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  untax_test_options(${target})
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gtest_main)
  if(NOT "relacy" IN_LIST arg_LINK)  # which is compiled with other flags
    target_precompile_headers(${target} REUSE_FROM untax_test_headers)
  endif()
  set(serial "")
  if(arg_SERIAL)
    set(serial SERIAL)
  endif()
  untax_register(${name} LABEL ${arg_LABEL} ${serial} COMMAND $<TARGET_FILE:${target}>)
endfunction()

# untax_add_gpu_test(name SOURCES file...) makes a GoogleTest program of .cu and .cpp files. Its tests skip themselves
# if there are too few GPUs. No other test runs at the same time.
function(untax_add_gpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  set(target ${name}_test)
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  untax_test_options(${target})
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  untax_register(${name} LABEL gpu SERIAL COMMAND $<TARGET_FILE:${target}>)
endfunction()
