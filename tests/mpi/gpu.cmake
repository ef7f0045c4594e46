# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Run by hand on a GPU machine: `ninja accord_partitioned_gpu_mpich`.
include(AccordGpuProgram)
if(ACCORD_GPU_PROGRAMS)
  set(device_header "${PROJECT_SOURCE_DIR}/include/accord/partitioned.cuh"
                    "${PROJECT_SOURCE_DIR}/include/accord/partitioned_layout.h")
  foreach(flavour IN LISTS ACCORD_MPI_FLAVOURS)
    foreach(name IN ITEMS gpu graphs_gpu allreduce_gpu collectives_gpu)
      accord_gpu_program(accord_partitioned_${name}_${flavour} ${flavour} "${CMAKE_CURRENT_SOURCE_DIR}/partitioned_${name}.cu"
        LINK accord DEPENDS ${device_header} "${CMAKE_CURRENT_SOURCE_DIR}/partitioned_nccl.h")
    endforeach()
    accord_gpu_program(accord_partitioned_vector_add_gpu_${flavour} ${flavour}
      "${PROJECT_SOURCE_DIR}/examples/partitioned_vector_add.cpp"
      LINK accord DEPENDS ${device_header} "${PROJECT_SOURCE_DIR}/examples/blocks.h")
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
