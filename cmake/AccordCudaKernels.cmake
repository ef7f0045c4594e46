# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Compiles the CUDA kernels of src/device with nvcc, where there is one that can, and embeds them in the library.
# Not CMake's own CUDA language: that insists on a whole working toolkit, and links its runtime.
option(ACCORD_CUDA_KERNELS "compile the CUDA kernels where nvcc is found" ON)
set(ACCORD_CUDA_ARCHITECTURES "90-real;75-virtual" CACHE STRING
    "what the CUDA kernels are compiled for, written as for CMAKE_CUDA_ARCHITECTURES")
set(ACCORD_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}" CACHE FILEPATH
    "the C++ compiler that nvcc works with, where it does not know the one that compiles all else")
option(ACCORD_CUDA_COMPRESS "make the CUDA kernels as small as nvcc can: for many architectures" OFF)
find_program(ACCORD_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)

# -real is machine code for one generation, -virtual is PTX for it and all later ones, a bare number both.
function(accord_cuda_flags result)
  set(flags -fatbin -std=c++20 -O3 --fmad=false -ccbin "${ACCORD_CUDA_HOST_COMPILER}" -allow-unsupported-compiler)
  if(ACCORD_CUDA_COMPRESS)
    list(APPEND flags --compress-mode=size)
  endif()
  foreach(entry IN LISTS ACCORD_CUDA_ARCHITECTURES)
    if(NOT entry MATCHES "^([0-9]+[af]?)(-real|-virtual)?$")
      message(FATAL_ERROR "ACCORD_CUDA_ARCHITECTURES: ${entry} is no architecture")
    endif()
    set(number "${CMAKE_MATCH_1}")
    if(NOT entry MATCHES "-virtual$")
      list(APPEND flags -gencode "arch=compute_${number},code=sm_${number}")
    endif()
    if(NOT entry MATCHES "-real$")
      list(APPEND flags -gencode "arch=compute_${number},code=compute_${number}")
    endif()
  endforeach()
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# Whether nvcc gets along with these flags and the host compiler. Asked once for each set of them.
function(accord_check_nvcc flags)
  if(ACCORD_NVCC_CHECKED STREQUAL "${ACCORD_NVCC};${flags}")
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/check_nvcc.cu")
  file(WRITE "${source}" "#include <span>\nextern \"C\" __global__ void kernel(const __grid_constant__ int) {}\n")
  execute_process(COMMAND "${ACCORD_NVCC}" ${flags} -o "${source}.fatbin" "${source}"
                  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(works TRUE)
  if(failed)
    set(works FALSE)
    message(STATUS "${ACCORD_NVCC} cannot compile the CUDA kernels:\n${output}")
  endif()
  set(ACCORD_NVCC_WORKS ${works} CACHE INTERNAL "whether nvcc can compile our kernels")
  set(ACCORD_NVCC_CHECKED "${ACCORD_NVCC};${flags}" CACHE INTERNAL "what ACCORD_NVCC_WORKS is about")
endfunction()

# Sets `sources` to what embeds the kernels, to nothing where they cannot be compiled. Called in src/device.
function(accord_cuda_kernels sources)
  set(${sources} "" PARENT_SCOPE)
  if(NOT ACCORD_CUDA_KERNELS OR NOT ACCORD_NVCC)
    message(STATUS "CUDA kernels: none (nvcc: ${ACCORD_NVCC}, ACCORD_CUDA_KERNELS: ${ACCORD_CUDA_KERNELS})")
    return()
  endif()
  accord_cuda_flags(flags)
  accord_check_nvcc("${flags}")
  if(NOT ACCORD_NVCC_WORKS)
    message(STATUS "CUDA kernels: none")
    return()
  endif()
  message(STATUS "CUDA kernels: ${ACCORD_CUDA_ARCHITECTURES} by ${ACCORD_NVCC}")
  foreach(name IN ITEMS kernels pack_kernels inbox_kernel partition_kernels)
    set(fatbin "${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}.fatbin")
    set(kernels "${CMAKE_CURRENT_SOURCE_DIR}/cuda/${name}.cu")
    add_custom_command(
      OUTPUT "${fatbin}"
      COMMAND "${ACCORD_NVCC}" ${flags} -I "${CMAKE_CURRENT_SOURCE_DIR}/.." -o "${fatbin}" "${kernels}"
      DEPENDS "${kernels}" cuda/${name}.h cuda/inbox_direct.h cuda/inbox_packets.h cuda/inbox_units.h cuda/kernels.h cuda/partition_packets.h cuda/partition_words.h cuda/reduce_units.h
              inbox.h pack.h partition_reducer.h partition_reduction.h reduce_functions.h reduction.h runs.h
      COMMENT "Compiling cuda/${name}.cu"
      VERBATIM)
    list(APPEND fatbins "${fatbin}")
    string(TOUPPER "ACCORD_CUDA_${name}_FATBIN" definition)
    list(APPEND definitions "${definition}=\"${fatbin}\"")
  endforeach()
  set_source_files_properties(cuda/kernels.S PROPERTIES
    OBJECT_DEPENDS "${fatbins}" COMPILE_DEFINITIONS "${definitions}")
  set_source_files_properties(cuda/driver.cpp PROPERTIES COMPILE_DEFINITIONS ACCORD_CUDA_KERNELS)
  set(${sources} cuda/kernels.S PARENT_SCOPE)
endfunction()
