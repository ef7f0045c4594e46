# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Compiles the Level Zero kernels of src/device to SPIR-V, where clang and the LLVM translator of its version are
# found (Debian: clang-14 and llvm-spirv-14), and embeds them in the library.
option(ACCORD_LEVEL_ZERO_KERNELS "compile the Level Zero kernels where clang and llvm-spirv are found" ON)

# Finds a translator and the clang of its version: ACCORD_LLVM_SPIRV and ACCORD_CLANG.
function(accord_find_spirv_compiler)
  foreach(version IN ITEMS 14 15 16 17 18 19)
    find_program(ACCORD_LLVM_SPIRV llvm-spirv-${version})
    find_program(ACCORD_CLANG clang-${version})
    if(ACCORD_LLVM_SPIRV AND ACCORD_CLANG)
      return()
    endif()
    unset(ACCORD_LLVM_SPIRV CACHE)
    unset(ACCORD_CLANG CACHE)
  endforeach()
endfunction()

# In SPIR-V, blocks follow those that dominate them, which neither -O2 nor rotated loops heed. All rounds as on the CPU.
set(accord_spirv_flags -cl-std=clc++2021 -target spir64 -O1 -mllvm -rotation-max-header-size=0
    -ffp-contract=off -Wall -Wextra)

# Whether the two get along with each other and the flags. Asked once for each set of them.
function(accord_check_spirv_compiler)
  set(compiler "${ACCORD_CLANG};${ACCORD_LLVM_SPIRV};${accord_spirv_flags}")
  if(ACCORD_SPIRV_CHECKED STREQUAL "${compiler}")
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/check_spirv.clcpp")
  file(WRITE "${source}" "__kernel void one(__global int* at) { at[get_global_id(0)] = 1; }\n")
  execute_process(COMMAND "${ACCORD_CLANG}" ${accord_spirv_flags} -emit-llvm -c -o "${source}.bc" "${source}"
                 
                  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT failed)
    execute_process(COMMAND "${ACCORD_LLVM_SPIRV}" --spirv-max-version=1.2 -o "${source}.spv" "${source}.bc"
                    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  endif()
  set(works TRUE)
  if(failed)
    set(works FALSE)
    message(STATUS "${ACCORD_CLANG} and ${ACCORD_LLVM_SPIRV} cannot compile the Level Zero kernels:\n${output}")
  endif()
  set(ACCORD_SPIRV_WORKS ${works} CACHE INTERNAL "whether clang and llvm-spirv can compile our kernels")
  set(ACCORD_SPIRV_CHECKED "${compiler}" CACHE INTERNAL "what ACCORD_SPIRV_WORKS is about")
endfunction()

# accord_spirv(<module> <source> [<definition>]): one module, entered in `modules` of the caller.
function(accord_spirv module source)
  set(spirv "${CMAKE_CURRENT_BINARY_DIR}/level_zero_${module}.spv")
  set(definition)
  if(ARGN)
    set(definition "-D${ARGN}")
  endif()
  add_custom_command(
    OUTPUT "${spirv}"
    COMMAND "${ACCORD_CLANG}" ${accord_spirv_flags} -I "${CMAKE_CURRENT_SOURCE_DIR}/opencl"
            -I "${CMAKE_CURRENT_SOURCE_DIR}/.." ${definition} -emit-llvm -c -o "${spirv}.bc"
            "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
    COMMAND "${ACCORD_LLVM_SPIRV}" --spirv-max-version=1.2 --spirv-fp-contract=off -o "${spirv}" "${spirv}.bc"
    DEPENDS ${source} inbox.h launched_inbox_kernels.h launched_inbox_words.h level_zero/kernels.h opencl/std.h pack.h reduce_functions.h
            reduction.h runs.h
    COMMENT "Compiling ${source} for ${module}"
    VERBATIM)
  set(modules ${modules} ${module} PARENT_SCOPE)
endfunction()

# An assembler file with the modules as data, and a table of them for level_zero/modules.cpp.
function(accord_embed_spirv file)
  set(data "")
  set(table "")
  foreach(module IN LISTS ARGN)
    set(spirv "${CMAKE_CURRENT_BINARY_DIR}/level_zero_${module}.spv")
    list(APPEND spirvs "${spirv}")
    string(APPEND data "        .balign 16\n0:      .incbin \"${spirv}\"\n1:      .pushsection .data.rel.ro,\"aw\"\n"
                       "        .quad 2f, 0b, 1b - 0b\n        .popsection\n2:      .asciz \"${module}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${file}" CONTENT "/* Made by cmake/AccordSpirv.cmake. */
        .pushsection .data.rel.ro,\"aw\"
        .balign 8
        .globl accord_level_zero_modules
        .hidden accord_level_zero_modules
accord_level_zero_modules:
        .popsection
        .section .rodata
${data}        .pushsection .data.rel.ro,\"aw\"
        .quad 0, 0, 0
        .popsection
        .section .note.GNU-stack, \"\", %progbits
" @ONLY)
  set_source_files_properties("${file}" PROPERTIES OBJECT_DEPENDS "${spirvs}")
endfunction()

# Sets `sources` to what embeds the kernels, to nothing where they cannot be compiled. Called in src/device. There is a
# module for each line of the list in reduce_functions.h, one for inboxes of each that fits a unit of them, and one each
# for layouts and for inboxes that combine nothing.
function(accord_level_zero_kernels sources)
  set(${sources} "" PARENT_SCOPE)
  set(ACCORD_LEVEL_ZERO_KERNELS_BUILT FALSE CACHE INTERNAL "whether the library has Level Zero kernels")
  accord_find_spirv_compiler()
  if(NOT ACCORD_LEVEL_ZERO_KERNELS OR NOT ACCORD_LLVM_SPIRV)
    message(STATUS "Level Zero kernels: none (clang: ${ACCORD_CLANG}, llvm-spirv: ${ACCORD_LLVM_SPIRV})")
    return()
  endif()
  accord_check_spirv_compiler()
  if(NOT ACCORD_SPIRV_WORKS)
    message(STATUS "Level Zero kernels: none")
    return()
  endif()
  message(STATUS "Level Zero kernels: by ${ACCORD_CLANG} and ${ACCORD_LLVM_SPIRV}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS reduce_functions.h)
  set(entry "(ACCORD_REDUCTIONS_OF_[A-Z]+)\\(X, ([a-z0-9_]+), ([A-Za-z0-9_:<>]+)\\)")
  file(READ reduce_functions.h header)
  string(FIND "${header}" "define ACCORD_ODD_REDUCTIONS" odd)
  string(SUBSTRING "${header}" 0 ${odd} fitting)
  string(REGEX MATCHALL "${entry}" calls "${header}")
  foreach(call IN LISTS calls)
    string(REGEX MATCH "${entry}" call "${call}")
    if(NOT CMAKE_MATCH_2 STREQUAL "element")  # a list of lists
      accord_spirv(${CMAKE_MATCH_2} level_zero/reduce_kernels.clcpp "ACCORD_KERNELS(X)=${call}")
      string(FIND "${fitting}" "${call}" fits)
      if(NOT fits EQUAL -1)
        accord_spirv(inbox_${CMAKE_MATCH_2} launched_inbox_reduce_kernels.clcpp "ACCORD_INBOX_KERNELS(X)=${call}")
      endif()
    endif()
  endforeach()
  accord_spirv(pack level_zero/pack_kernels.clcpp)
  accord_spirv(inbox launched_inbox_kernels.clcpp)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/level_zero/modules.S")
  accord_embed_spirv("${file}" ${modules})
  set_source_files_properties(level_zero/modules.cpp PROPERTIES COMPILE_DEFINITIONS ACCORD_LEVEL_ZERO_KERNELS)
  set(${sources} "${file}" PARENT_SCOPE)
  set(ACCORD_LEVEL_ZERO_KERNELS_BUILT TRUE CACHE INTERNAL "whether the library has Level Zero kernels")
endfunction()
