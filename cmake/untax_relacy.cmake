# Relacy, the model checker, as the target `relacy`: the system's headers with two changes that let it live
# in one program with other things, and under the sanitizers.
#
# 1. It replaces the global operator new and delete by inline functions, and only the unsized ones. Which
#    allocations go through them is then a matter of inlining: programs end with "free(): invalid pointer",
#    and AddressSanitizer reports mismatched pairs. Nothing here needs it, so it is switched off.
# 2. It changes stacks with _longjmp, which ThreadSanitizer and AddressSanitizer misunderstand and
#    _FORTIFY_SOURCE (on by default on Ubuntu) aborts. Our own platform.hpp takes the place of Relacy's.
#
# Targets that link `relacy` are compiled without instrumentation: Relacy runs in one thread, checks memory order
# itself, and is ten times slower when instrumented. Only engines/model and model tests may link it.
find_path(RELACY_INCLUDE_DIR NAMES relacy/relacy.hpp REQUIRED)
set(relacy_dir ${PROJECT_BINARY_DIR}/relacy_headers)
set(relacy_platform ${PROJECT_SOURCE_DIR}/cmake/relacy/platform.hpp)

# relacy_change(OUT from to) replaces text that must be there.
function(relacy_change out from to)
  string(FIND "${${out}}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${RELACY_INCLUDE_DIR}/relacy/context.hpp does not hold \"${from}\": "
      "cmake/untax_relacy.cmake was written for another version of Relacy.")
  endif()
  string(REPLACE "${from}" "${to}" changed "${${out}}")
  set(${out} "${changed}" PARENT_SCOPE)
endfunction()

file(COPY ${RELACY_INCLUDE_DIR}/relacy DESTINATION ${relacy_dir}
  PATTERN platform.hpp EXCLUDE PATTERN context.hpp EXCLUDE)
configure_file(${relacy_platform} ${relacy_dir}/relacy/platform.hpp COPYONLY)
file(READ ${RELACY_INCLUDE_DIR}/relacy/context.hpp context)
relacy_change(context "inline void* operator new (size_t size) RL_THROW_SPEC(std::bad_alloc)"
  "#ifdef RL_REPLACE_GLOBAL_NEW\ninline void* operator new (size_t size) RL_THROW_SPEC(std::bad_alloc)")
relacy_change(context "#define RL_NEW_PROXY" "#endif\n#define RL_NEW_PROXY")
relacy_change(context "//::free(current_test_suite);" "(::free)(current_test_suite);")
file(CONFIGURE OUTPUT ${relacy_dir}/relacy/context.hpp CONTENT "${context}" @ONLY)

add_library(relacy INTERFACE)
target_include_directories(relacy SYSTEM INTERFACE ${relacy_dir})
if(UNTAX_SANITIZE)
  target_compile_options(relacy INTERFACE -fno-sanitize=all -O2)
endif()
if(UNTAX_SANITIZE MATCHES "thread")
  target_compile_definitions(relacy INTERFACE RL_THREAD_SANITIZER)
elseif(UNTAX_SANITIZE MATCHES "address")
  target_compile_definitions(relacy INTERFACE RL_ADDRESS_SANITIZER)
endif()
