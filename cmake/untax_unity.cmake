# untax_unity(target) compiles the sources of a folder together, a few at a time, if UNTAX_UNITY is on, as in the preset
# release: a first build takes much less time, since most of its time goes into headers. Repeated builds are quicker
# without it.
#
# CMake's own unity builds name sources by their path on this machine, so that ccache would find nothing for a second
# clone.
option(UNTAX_UNITY "Compile the sources of a folder together, for builds that are made once" OFF)
set(UNTAX_UNITY_SOURCES 12 CACHE STRING "So many sources at most")

function(untax_unity target)
  if(NOT UNTAX_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(kept "")
  set(groups "")
  foreach(source IN LISTS sources)
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" path ${source})
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    # With CUDA, kernels take most of the time, not the sources in cuda/, which have equal names. tests/pretended has
    # stand-ins for sources in no_cuda/, for no_cuda.cpp and for gemm_timer.cpp, which the linker then has to leave in
    # the library.
    if(NOT path MATCHES "\\.cpp$" OR path MATCHES "/cuda/|/no_cuda(/|\\.cpp$)|^ops/choice/gemm_timer" OR source MATCHES "^${PROJECT_BINARY_DIR}/" OR definitions OR options)
      list(APPEND kept ${source})
      continue()
    endif()
    get_filename_component(folder ${path} DIRECTORY)
    string(REPLACE "/" "_" group ${folder})
    math(EXPR count_${group} "0${count_${group}} + 1")
    math(EXPR batch "(${count_${group}} - 1) / ${UNTAX_UNITY_SOURCES}")
    list(APPEND groups ${group}_${batch})
    string(APPEND text_${group}_${batch} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(unity ${PROJECT_BINARY_DIR}/generated/unity/${target}/${group}.cpp)
    file(CONFIGURE OUTPUT ${unity} CONTENT "${text_${group}}" @ONLY)
    list(APPEND kept ${unity})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${kept}")
  # A local name of one source may be a name of an unnamed namespace in another one; and GCC treats included sources as
  # headers.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
