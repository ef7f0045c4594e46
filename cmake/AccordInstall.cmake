# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# What `cmake --install` puts below a prefix beside the libraries, and the Debian package of the same (cpack -G DEB).
# The prefix may be moved: everything in it finds the rest relative to itself.
include(CMakePackageConfigHelpers)

set(accord_made "${PROJECT_BINARY_DIR}/install")
set(accord_pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(accord_cmake "${CMAKE_INSTALL_LIBDIR}/cmake/Accord")
set(accord_modules "${CMAKE_INSTALL_DATADIR}/modulefiles/accord")
set(accord_python "${CMAKE_INSTALL_DATADIR}/accord/python")
set(accord_doc "${CMAKE_INSTALL_DATADIR}/doc/accord")

# Of two folders below the prefix.
function(accord_relative result from to)
  file(RELATIVE_PATH path "/prefix/${from}" "/prefix/${to}")
  string(REGEX REPLACE "/$" "" path "${path}")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()
accord_relative(accord_prefix_from_pkgconfig "${accord_pkgconfig}" "")
accord_relative(accord_prefix_from_module "${accord_modules}" "")
accord_relative(accord_data_from_bin "${CMAKE_INSTALL_BINDIR}" "${CMAKE_INSTALL_DATADIR}")

# To compile and link with it.
set(accord_packaging "${PROJECT_SOURCE_DIR}/packaging")
configure_file("${accord_packaging}/accord.pc.in" "${accord_made}/accord.pc" @ONLY)
install(FILES "${accord_made}/accord.pc" DESTINATION "${accord_pkgconfig}")
configure_package_config_file("${accord_packaging}/AccordConfig.cmake.in" "${accord_made}/AccordConfig.cmake"
                              INSTALL_DESTINATION "${accord_cmake}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${accord_made}/AccordConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${accord_made}/AccordConfig.cmake" "${accord_made}/AccordConfigVersion.cmake" DESTINATION "${accord_cmake}")
install(EXPORT AccordTargets NAMESPACE Accord:: DESTINATION "${accord_cmake}")

# The command: a launcher, and the Python package where no other Python program meets it. `make install` and
# `make package` lay what that needs of PyPI into build/packages; without, the user's Python has to have it.
configure_file("${accord_packaging}/accord.in" "${accord_made}/accord" @ONLY)
install(PROGRAMS "${accord_made}/accord" DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES "${accord_packaging}/start.py" DESTINATION "${accord_python}" RENAME __main__.py)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/accord" DESTINATION "${accord_python}"
        FILES_MATCHING PATTERN "*.py" PATTERN "*.sh" PATTERN "*.j2" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY "${PROJECT_BINARY_DIR}/packages" DESTINATION "${CMAKE_INSTALL_DATADIR}/accord" OPTIONAL
        PATTERN "__pycache__" EXCLUDE PATTERN "bin" EXCLUDE)
install(DIRECTORY share/accord/tables DESTINATION "${CMAKE_INSTALL_DATADIR}/accord" FILES_MATCHING PATTERN "*.json")

configure_file("${accord_packaging}/modulefile.in" "${accord_made}/modulefile" @ONLY)
install(FILES "${accord_made}/modulefile" DESTINATION "${accord_modules}" RENAME "${PROJECT_VERSION}")

# To read.
install(FILES README.md LICENSE CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md THIRD_PARTY.md DESTINATION "${accord_doc}")
install(DIRECTORY docs examples DESTINATION "${accord_doc}" PATTERN "__pycache__" EXCLUDE)

# The manual page and what shells complete are made from the command's own help, so by a Python that can run it.
execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import typer, rich" RESULT_VARIABLE accord_no_typer OUTPUT_QUIET ERROR_QUIET)
if(accord_no_typer)
  message(STATUS "no manual page, no completion: ${Python3_EXECUTABLE} has no typer")
else()
  set(accord_pages "${accord_made}/man/accord.1" "${accord_made}/completion/bash" "${accord_made}/completion/zsh"
                   "${accord_made}/completion/fish")
  file(GLOB accord_command CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/accord/*.py")
  add_custom_command(OUTPUT ${accord_pages}
    COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/scripts/manual.py" "${accord_made}"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/manual.py" ${accord_command}
    COMMENT "Writing the manual page and what shells complete"
    VERBATIM)
  add_custom_target(accord_manual ALL DEPENDS ${accord_pages})
  install(FILES "${accord_made}/man/accord.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${accord_made}/completion/bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME accord)
  install(FILES "${accord_made}/completion/zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" RENAME _accord)
  install(FILES "${accord_made}/completion/fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" RENAME accord.fish)
endif()

# The package names what the C and C++ libraries have to be. That of the MPI is left to the user, who may have any.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE accord_libc ERROR_QUIET)
string(REGEX MATCH "[0-9]+\\.[0-9]+" accord_libc "${accord_libc}")
set(accord_depends "python3 (>= 3.10)" "libc6 (>= ${accord_libc})")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  string(REGEX MATCH "^[0-9]+" accord_gcc "${CMAKE_CXX_COMPILER_VERSION}")
  list(APPEND accord_depends "libstdc++6 (>= ${accord_gcc})" "libgcc-s1")
else()
  list(APPEND accord_depends "libstdc++6" "libgcc-s1")
endif()
list(JOIN accord_depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "mpich | openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${accord_packaging}/debian/triggers" "${accord_packaging}/debian/prerm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_NAME accord)
set(CPACK_PACKAGE_VENDOR "The Accord authors")
set(CPACK_PACKAGE_CONTACT "The Accord authors <accord@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Makes the MPI you have work on accelerator memory")
set(CPACK_PACKAGE_DESCRIPTION "A library to preload into MPI programs, or to link them with, and the command accord,
which runs, checks, measures and tunes them.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
include(CPack)
