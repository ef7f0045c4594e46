# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Compiles for machines with an older C library than this one's: ACCORD_ZIG is the command of zig, whose clang and linker
# know each version of it; ACCORD_GLIBC says which. The C++ library is that of this machine's GCC, linked in. zig's own
# would be of no use: it can hold no exception that the program, of GCC, throws in an error handler.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ACCORD_ZIG ACCORD_GLIBC)
set(accord_compiler "${ACCORD_ZIG}" cc -target x86_64-linux-gnu.${ACCORD_GLIBC})
set(CMAKE_C_COMPILER ${accord_compiler})
set(CMAKE_CXX_COMPILER ${accord_compiler})
set(CMAKE_ASM_COMPILER cc)  # assembler files know no C library
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)

# Headers of other libraries come after zig's of the C library. zig would check for undefined behaviour where nothing is
# optimised, by a library that is not linked. Warnings are the business of the ordinary build.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include -fno-sanitize=undefined -w")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -include ${CMAKE_CURRENT_LIST_DIR}/glibc/config.h -I${CMAKE_CURRENT_LIST_DIR}/glibc")
execute_process(COMMAND c++ -E -x c++ -v /dev/null OUTPUT_QUIET ERROR_VARIABLE accord_folders COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n [^\n]*/c\\+\\+/[^\n]*" accord_folders "${accord_folders}")
foreach(folder IN LISTS accord_folders)
  string(REPLACE "\n " " -I" folder "${folder}")
  string(APPEND CMAKE_CXX_FLAGS_INIT "${folder}")
endforeach()

# The unwinder must be that of the process, since the exceptions of the program come through our functions, too. This
# machine's asks for this machine's C library; the user's comes with that of the user.
set(accord_missing "${CMAKE_BINARY_DIR}/glibc_missing.o")
execute_process(COMMAND ${accord_compiler} -O2 -fPIC "-I${CMAKE_CURRENT_LIST_DIR}/glibc"
                        -c "${CMAKE_CURRENT_LIST_DIR}/glibc/missing.c" -o "${accord_missing}"
                COMMAND_ERROR_IS_FATAL ANY)
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT "${accord_missing}")
foreach(library IN ITEMS libstdc++.a libgcc_s.so.1)
  execute_process(COMMAND c++ -print-file-name=${library} OUTPUT_VARIABLE accord_library
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES_INIT " ${accord_library}")
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined)
