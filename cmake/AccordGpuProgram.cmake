# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# MPI programs with kernels, run by hand on a GPU machine. They need CUDA's runtime as well as nvcc.
#
#   accord_gpu_program(<target> <flavour> <source>... [LINK <library>...] [DEPENDS <file>...])
#       a program that nvcc compiles, in build/bin; only built if named. `DEPENDS` are the headers that it includes.
#       Only where ACCORD_GPU_PROGRAMS is true, which is known once src/device is configured.
find_library(ACCORD_CUDART cudart_static HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib)
set(ACCORD_GPU_PROGRAMS FALSE)
if(ACCORD_NVCC_WORKS AND ACCORD_CUDART)
  set(ACCORD_GPU_PROGRAMS TRUE)
endif()

function(accord_gpu_program target flavour)
  cmake_parse_arguments(program "" "" "LINK;DEPENDS" ${ARGN})
  accord_cuda_flags(flags)
  list(REMOVE_ITEM flags -fatbin -std=c++20)
  list(TRANSFORM ACCORD_MPI_${flavour}_INCLUDE PREPEND "-I" OUTPUT_VARIABLE includes)
  set(objects "")
  foreach(source IN LISTS program_UNPARSED_ARGUMENTS)
    cmake_path(GET source STEM name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.dir/${name}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/${target}.dir"
      COMMAND "${ACCORD_NVCC}" ${flags} -std=c++17 -I "${PROJECT_SOURCE_DIR}/include" ${includes} -x cu -c -o "${object}"
              "${source}"
      DEPENDS "${source}" ${program_DEPENDS}
      COMMENT "Compiling ${name} of ${target} for GPUs"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_executable(${target} EXCLUDE_FROM_ALL ${objects})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE ${program_LINK} accord_mpi_${flavour} "${ACCORD_CUDART}" ${CMAKE_DL_LIBS} rt)
endfunction()
