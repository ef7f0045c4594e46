# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: messages by headers, and by a collective library.
# Messages by headers.
accord_mpi_test(NAME mpi.${flavour}.early FLAVOUR ${flavour} RANKS 2
  COMMAND accord_early_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1)
foreach(program IN ITEMS messages probed_messages)
  foreach(mode IN ITEMS single threads)
    accord_mpi_test(NAME mpi.${flavour}.${program}.${mode} FLAVOUR ${flavour} RANKS 2
      COMMAND accord_${program}_${flavour} ${mode} PRELOAD accord LABELS mpi TIMEOUT 60
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_OUTBOX_BYTES=64K)
  endforeach()
endforeach()
accord_mpi_test(NAME mpi.${flavour}.messages.late FLAVOUR ${flavour} RANKS 2
  COMMAND accord_messages_${flavour} single PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_OUTBOX_BYTES=64K ACCORD_TEST_COPY_POLLS=3)
# Of 4,000 that are lent, few are moved: those whose receiver is not yet in the call. That may be one rank's for long
# where cores are few, so that both are looked at.
# What is lent takes no room of the outbox.
foreach(outbox IN ITEMS 128M 64K)
  set(test mpi.${flavour}.messages.windows.${outbox})
  accord_mpi_test(NAME ${test} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_messages_${flavour} windows PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_LOG=info ACCORD_OUTBOX_BYTES=${outbox})
  set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION
    "[(][0-9]?[0-9]?[0-9] of them lent;[2-9][0-9][0-9][0-9] of these moved.*[2-9][0-9][0-9][0-9] of these moved")
endforeach()
foreach(program IN ITEMS message_rules message_threads)
  accord_mpi_test(NAME mpi.${flavour}.${program} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_${program}_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_LOG=info)
  set_tests_properties(mpi.${flavour}.${program} PROPERTIES FAIL_REGULAR_EXPRESSION "by headers .0 of them lent")
endforeach()
# By a collective library, where it can be had.
if(flavour MATCHES "openmpi")
  set(oneccl "${PROJECT_SOURCE_DIR}/.deps/oneccl/libccl.so.2")
  set(real "")
  if(EXISTS "${oneccl}")
    set(real "oneccl some oneccl ACCORD_P2P_LIBRARY=oneccl ACCORD_CCL_LIBRARIES=oneccl:${oneccl} CCL_YIELD=sched_yield")
  endif()
  foreach(row IN ITEMS ${real} "some some" "collectives some ACCORD_ALGORITHM=nccl" "late some ACCORD_TEST_COPY_POLLS=3" "long some ACCORD_NODE_BYTES=8K" "never none ACCORD_NODE_BYTES=0"
                       "fails some FAKE_NCCL_FAIL_MESSAGE=5" "fails_late some FAKE_NCCL_FAIL_MESSAGE=15 FAKE_NCCL_FAIL_LATE=1"
                       "by_setting some ACCORD_P2P_LIBRARY=none ACCORD_ALGORITHM=send:nccl"
                       "by_info info ACCORD_P2P_LIBRARY=none"
                       "by_table some ACCORD_P2P_LIBRARY=none ACCORD_TABLE=${CMAKE_CURRENT_SOURCE_DIR}/send_table.json"
                       "by_none none ACCORD_ALGORITHM=send:copy-engine"
                       "refused none FAKE_NCCL_FAIL_INIT=1" "one_device none ACCORD_TEST_EXCLUSIVE_DEVICE=1"
                       "lacking none ACCORD_CCL_LIBRARIES=none" "unknown none ACCORD_P2P_LIBRARY=twaddle")
    separate_arguments(row)
    list(POP_FRONT row name)
    set(arguments ${row})
    list(FILTER arguments EXCLUDE REGEX "=")
    list(FILTER row INCLUDE REGEX "=")
    accord_mpi_test(NAME mpi.${flavour}.library_messages.${name} FLAVOUR ${flavour} RANKS 3
      COMMAND accord_library_messages_${flavour} ${arguments} PRELOAD accord LABELS mpi TIMEOUT 60
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_P2P_LIBRARY=nccl ACCORD_NODE_BYTES=1
                  ACCORD_REGION_BYTES=64K ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl> ${row})
  endforeach()
  # Who fetches them, if not a library.
  foreach(way IN ITEMS copy-kernel copy-engine staged)
    accord_mpi_test(NAME mpi.${flavour}.library_messages.${way} FLAVOUR ${flavour} RANKS 3
      COMMAND accord_library_messages_${flavour} none PRELOAD accord LABELS mpi TIMEOUT 60
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_ALGORITHM=send:${way} ACCORD_LOG=info ACCORD_LINGER_US=60000)
  endforeach()
  set(messages mpi.${flavour}.library_messages)
  set_tests_properties(${messages}.copy-kernel PROPERTIES FAIL_REGULAR_EXPRESSION "[(]0 of them by a kernel")
  set_tests_properties(${messages}.copy-engine PROPERTIES FAIL_REGULAR_EXPRESSION "[(][1-9][0-9]* of them by a kernel")
  set_tests_properties(${messages}.staged PROPERTIES FAIL_REGULAR_EXPRESSION "has sent [1-9][0-9]* messages")
endif()
