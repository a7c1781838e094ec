# The sm_90a engine: sets UNTAX_CUDA_SOURCES, and UNTAX_HAS_CUDA when CUDA code is compiled.
set(UNTAX_CUDA_SOURCES "")
set(UNTAX_HAS_CUDA OFF)
# Sources in cuda/ and in no_cuda/ replace each other, and so do gpu.cu and no_cuda.cpp of an operator or the decoder:
# sources that match this are left out.
set(UNTAX_LEFT_OUT "/(src|engines)/[a-z_]+/cuda/")
if(NOT UNTAX_CUDA)
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  find_program(UNTAX_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT UNTAX_NVCC AND DEFINED SKBUILD)  # pip shows no warnings of CMake
    message(FATAL_ERROR "UNTAX_CUDA is on, but nvcc was not found. Put it on the PATH or set CUDA_HOME.")
  elseif(NOT UNTAX_NVCC)
    message(WARNING "UNTAX_CUDA is on, but nvcc was not found: building without the sm_90a engine. "
      "Put nvcc on PATH or set CMAKE_CUDA_COMPILER.")
    return()
  endif()
  set(CMAKE_CUDA_COMPILER ${UNTAX_NVCC})
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a)
endif()
if(UNTAX_CCACHE_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${UNTAX_CCACHE_LAUNCHER})
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# nvcc supports C++20 since CUDA 12; CMake knows that since 3.26.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
# fmt 9 gives up constexpr when it sees nvcc, and then fails to compile as C++20.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-DFMT_USE_CONSTEXPR=1>)
# The arguments of kernels depend on this definition, so all of the library sees it; only
# engines/gpu/trace/launch_trace.hpp tests it.
if(UNTAX_KERNEL_TRACE)
  add_compile_definitions(UNTAX_KERNEL_TRACE)
endif()

file(GLOB_RECURSE UNTAX_CUDA_SOURCES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/engines/gpu/*.cu ${PROJECT_SOURCE_DIR}/src/*.cu
  ${PROJECT_SOURCE_DIR}/decoder/*.cu)
file(GLOB operator_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ops/*/*.cu)
list(FILTER operator_kernels EXCLUDE REGEX "/ops/_skeleton/")
list(APPEND UNTAX_CUDA_SOURCES ${operator_kernels})

# Sources without device code go to the host compiler, which takes a third of nvcc's time, and warns.
function(untax_leave_to_host_compiler)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} device REGEX "__(global|device|constant)__|<<<|[.]cuh[\">]")
    if(NOT device)
      # Designated initialisers of kernel arguments leave out members, which then have their defaults.
      set_source_files_properties(${source} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS -Wno-missing-field-initializers)
    endif()
  endforeach()
endfunction()
untax_leave_to_host_compiler(${UNTAX_CUDA_SOURCES})
list(APPEND UNTAX_CUDA_SOURCES ${UNTAX_KERNEL_SOURCES} ${UNTAX_COMM_SOURCES})
set(UNTAX_HAS_CUDA ON)

# The mutant of tests/gpu/mutants.sh is chosen when the tests run; only these sources are compiled with the choice.
set(UNTAX_MUTANTS "" CACHE STRING
  "Kernels that can leave something out (engines/gpu/channel/mutant.hpp): an expression that their sources match")
if(UNTAX_MUTANTS)
  foreach(source IN LISTS UNTAX_CUDA_SOURCES)
    if(source MATCHES "${UNTAX_MUTANTS}")
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS UNTAX_MUTANTS)
    endif()
  endforeach()
endif()
# NCCL is the baseline; its header is enough to build, its library is looked for at run time.
find_path(UNTAX_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(UNTAX_LEFT_OUT "/(src/[a-z_]+|engines/[a-z0-9]+)/no_cuda/|/(ops/[a-z_]+|decoder)/no_cuda\\.cpp$")
if(NOT UNTAX_NCCL_INCLUDE)
  message(STATUS "nccl.h was not found: building without the baseline")
  set(UNTAX_LEFT_OUT
    "/(src/[a-z_]+/no_cuda|engines/(gpu|product)/no_cuda)/|/(ops/[a-z_]+|decoder)/no_cuda\\.cpp$|bulk/cuda/(communicator|nccl)|bulk/no_cuda/(library_gemm|scratch)")
endif()

# untax_cuda_objects compiles the sources that a build with CUDA adds, except the kernels of GEMMs and of attention
# (variants/), which take most of its time; of those, the gate `ptx` compiles one of each kind. Nothing is linked. With
# UNTAX_CUDA_SHARE=N only every Nth source is compiled, other sources for each commit, as in gates
# (tests/style/cached.py).
set(UNTAX_CUDA_SHARE 1 CACHE STRING "Which part of its sources the target untax_cuda_objects compiles: 1 of so many")
function(untax_add_cuda_objects)
  set(all ${UNTAX_CUDA_SOURCES} ${ARGN})
  list(FILTER all EXCLUDE REGEX "/(variants|generated/kernels)/")
  set(turn "")
  if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-list --count HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      OUTPUT_VARIABLE turn OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT turn MATCHES "^[0-9]+$")
    set(turn 0)
  endif()
  set(sources "")
  foreach(source IN LISTS all)
    math(EXPR part "${turn} % ${UNTAX_CUDA_SHARE}")
    if(part EQUAL 0)
      list(APPEND sources ${source})
    endif()
    math(EXPR turn "${turn} + 1")
  endforeach()
  add_library(untax_cuda_objects OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(untax_cuda_objects PRIVATE untax OpenBLAS::headers CUDA::cudart_static)
  target_include_directories(untax_cuda_objects SYSTEM PRIVATE
    $<TARGET_PROPERTY:untax,INCLUDE_DIRECTORIES>)
  untax_warnings(untax_cuda_objects)
endfunction()
