# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# cmake -D source=FOLDER -D output=FILE [-D commit=NAME] -P WriteCommit.cmake: the commit of the sources as a C++ file.
# Every build runs it, since only git knows; what did not change stays untouched, so that nothing is compiled anew.
if(NOT commit AND EXISTS "${source}/COMMIT")  # a source distribution
  file(STRINGS "${source}/COMMIT" commit LIMIT_COUNT 1)
endif()
if(NOT commit AND EXISTS "${source}/.git")
  find_program(git git)
  if(git)
    # No tag and no branch: twelve digits of the commit, and "-dirty" where a tracked file differs from it.
    execute_process(COMMAND "${git}" -C "${source}" describe --always --exclude=* --abbrev=12 --dirty
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT [[
// Made by cmake/WriteCommit.cmake.
#include "base/commit.h"

const char* accord::commit() noexcept { return "@commit@"; }
]])
