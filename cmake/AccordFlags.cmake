# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# How everything here is compiled: standard, warnings, optimisation, where the results go. Targets of this
# project link accord_options; the third-party headers are used as they are.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# Line tables are all that a backtrace needs; full debug information takes a quarter of the build time.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A shared library that was linked anew has the same functions: what uses it need not be.
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

find_program(ACCORD_CCACHE ccache)
if(ACCORD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${ACCORD_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ACCORD_CCACHE}")
endif()

add_library(accord_options INTERFACE)
target_include_directories(accord_options INTERFACE "${PROJECT_SOURCE_DIR}/src"
                                                    "${PROJECT_SOURCE_DIR}/include")
target_compile_options(accord_options INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-fno-semantic-interposition>)
if(ACCORD_WARNINGS_AS_ERRORS)
  target_compile_options(accord_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()

# accord_unity(<target> <sources>): so many sources of it at a time, so that names in their anonymous namespaces must differ.
# Few enough that a change stays quick to try.
function(accord_unity target sources)
  if(ACCORD_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${sources})
  endif()
endfunction()

# What most sources include, and is large.
set(ACCORD_HEADERS <algorithm> <array> <atomic> <functional> <map> <memory> <mutex> <optional> <string> <thread>
                   <unordered_map> <utility> <vector> <fmt/format.h>)

# accord_precompile(<target> <owner> <header>...): the sources of the target find these headers compiled already, by
# <owner>, which is the first target of its name to ask. All that share an owner are compiled with the same options.
function(accord_precompile target owner)
  if(NOT ACCORD_UNITY OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # zig, which makes wheels, cannot
    return()
  elseif(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
