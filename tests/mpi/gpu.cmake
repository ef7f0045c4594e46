# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Run by hand on a GPU machine: `ninja accord_partitioned_gpu_mpich`. Needs CUDA's runtime as well as nvcc.
function(accord_gpu_program target flavour source)
  accord_cuda_flags(flags)
  list(REMOVE_ITEM flags -fatbin -std=c++20)
  list(TRANSFORM ACCORD_MPI_${flavour}_INCLUDE PREPEND "-I" OUTPUT_VARIABLE includes)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${ACCORD_NVCC}" ${flags} -std=c++17 -I "${PROJECT_SOURCE_DIR}/include" ${includes} -x cu -c -o "${object}"
            "${source}"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/include/accord/partitioned.cuh"
            "${PROJECT_SOURCE_DIR}/include/accord/partitioned_layout.h" ${ARGN}
    COMMENT "Compiling ${target} for GPUs"
    VERBATIM)
  add_executable(${target} EXCLUDE_FROM_ALL "${object}")
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE accord accord_mpi_${flavour} "${ACCORD_CUDART}" ${CMAKE_DL_LIBS} rt)
endfunction()
find_library(ACCORD_CUDART cudart_static HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib)
if(ACCORD_NVCC_WORKS AND ACCORD_CUDART)
  foreach(flavour IN LISTS ACCORD_MPI_FLAVOURS)
    foreach(name IN ITEMS gpu graphs_gpu allreduce_gpu collectives_gpu)
      accord_gpu_program(accord_partitioned_${name}_${flavour} ${flavour} "${CMAKE_CURRENT_SOURCE_DIR}/partitioned_${name}.cu"
        "${CMAKE_CURRENT_SOURCE_DIR}/partitioned_nccl.h")
    endforeach()
    foreach(name IN LISTS workloads)
      accord_gpu_program(accord_partitioned_${name}_gpu_${flavour} ${flavour}
        "${PROJECT_SOURCE_DIR}/examples/partitioned_${name}.cpp" "${PROJECT_SOURCE_DIR}/examples/blocks.h")
    endforeach()
  endforeach()
  # Without MPI: whether packets of inboxes are ever seen torn.
  accord_cuda_flags(flags)
  list(REMOVE_ITEM flags -fatbin)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/torn_packets_gpu.cu")
  add_custom_command(
    OUTPUT torn_packets_gpu.o
    COMMAND "${ACCORD_NVCC}" ${flags} -I "${PROJECT_SOURCE_DIR}/src" -c -o torn_packets_gpu.o "${source}"
    DEPENDS "${source}" "${PROJECT_SOURCE_DIR}/src/device/cuda/inbox_packets.h"
    COMMENT "Compiling torn_packets_gpu.cu for GPUs"
    VERBATIM)
  add_executable(accord_torn_packets_gpu EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/torn_packets_gpu.o")
  set_target_properties(accord_torn_packets_gpu PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(accord_torn_packets_gpu PRIVATE "${ACCORD_CUDART}" Threads::Threads ${CMAKE_DL_LIBS} rt)
endif()
