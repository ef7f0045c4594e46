# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Compiles the kernels of src/device for AMD's GPUs with clang, and embeds them in the library. Any clang that knows
# such a GPU and has a linker (lld) for it will do: hip/kernel.h stands in for ROCm's headers.
option(ACCORD_HIP_KERNELS "compile kernels for AMD's GPUs where a clang can" ON)
set(ACCORD_HIP_ARCHITECTURES "gfx90a;gfx942" CACHE STRING
    "the AMD GPUs that kernels are compiled for, where the compiler knows them")
find_program(ACCORD_HIP_CLANG NAMES amdclang++ clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15
             HINTS ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES bin lib/llvm/bin)

set(accord_hip_flags -x hip --cuda-device-only -nogpuinc -nogpulib -std=c++20 -O3 -ffp-contract=off
    -Wno-unused-command-line-argument)

# Sets `known` to those of ACCORD_HIP_ARCHITECTURES that the compiler compiles and links for. Asked once for each set.
function(accord_hip_known_architectures known)
  set(question "${ACCORD_HIP_CLANG};${ACCORD_HIP_ARCHITECTURES}")
  if(NOT ACCORD_HIP_CHECKED STREQUAL question)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/check_hip.cu")
    file(WRITE "${source}" "#include <span>\nextern \"C\" __attribute__((global)) void kernel(int*) {}\n")
    set(works "")
    foreach(architecture IN LISTS ACCORD_HIP_ARCHITECTURES)
      execute_process(COMMAND "${ACCORD_HIP_CLANG}" ${accord_hip_flags} --offload-arch=${architecture}
                              -o "${source}.image" "${source}"
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
      if(NOT failed)
        list(APPEND works ${architecture})
      endif()
    endforeach()
    set(ACCORD_HIP_KNOWN "${works}" CACHE INTERNAL "the AMD GPUs that the compiler knows")
    set(ACCORD_HIP_CHECKED "${question}" CACHE INTERNAL "what ACCORD_HIP_KNOWN is about")
  endif()
  set(${known} ${ACCORD_HIP_KNOWN} PARENT_SCOPE)
endfunction()

# Sets `sources` to what embeds the kernels, to nothing where they cannot be compiled. Called in src/device.
function(accord_hip_kernels sources)
  set(${sources} "" PARENT_SCOPE)
  set(architectures "")
  if(ACCORD_HIP_KERNELS AND ACCORD_HIP_CLANG)
    accord_hip_known_architectures(architectures)
  endif()
  if(NOT architectures)
    message(STATUS "HIP kernels: none (clang: ${ACCORD_HIP_CLANG}, ACCORD_HIP_KERNELS: ${ACCORD_HIP_KERNELS})")
    return()
  endif()
  message(STATUS "HIP kernels: ${architectures} by ${ACCORD_HIP_CLANG}")
  list(TRANSFORM architectures PREPEND --offload-arch= OUTPUT_VARIABLE targets)
  foreach(source IN ITEMS cuda/kernels cuda/pack_kernels hip/inbox_kernels)
    get_filename_component(name "${source}" NAME)
    set(image "${CMAKE_CURRENT_BINARY_DIR}/hip_${name}.image")
    set(kernels "${CMAKE_CURRENT_SOURCE_DIR}/${source}.cu")
    add_custom_command(
      OUTPUT "${image}"
      COMMAND "${ACCORD_HIP_CLANG}" ${accord_hip_flags} ${targets} --gpu-bundle-output
              -include "${CMAKE_CURRENT_SOURCE_DIR}/hip/kernel.h" -I "${CMAKE_CURRENT_SOURCE_DIR}/.."
              -o "${image}" "${kernels}"
      DEPENDS "${kernels}" hip/kernel.h cuda/kernels.h cuda/pack_kernels.h cuda/reduce_units.h pack.h reduce_functions.h
              reduction.h typemap.h hip/opencl.h inbox.h launched_inbox_kernels.clcpp launched_inbox_kernels.h
              launched_inbox_reduce_kernels.clcpp launched_inbox_words.h
      COMMENT "Compiling ${source}.cu for AMD's GPUs"
      VERBATIM)
    list(APPEND images "${image}")
    string(TOUPPER "ACCORD_HIP_${name}_IMAGE" definition)
    list(APPEND definitions "${definition}=\"${image}\"")
  endforeach()
  set_source_files_properties(hip/kernels.S PROPERTIES
    OBJECT_DEPENDS "${images}" COMPILE_DEFINITIONS "${definitions}")
  set_source_files_properties(hip/driver.cpp PROPERTIES COMPILE_DEFINITIONS ACCORD_HIP_KERNELS)
  set(${sources} hip/kernels.S PARENT_SCOPE)
endfunction()
