# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: messages by headers.
# Messages by headers.
accord_mpi_test(NAME mpi.${flavour}.early FLAVOUR ${flavour} RANKS 2
  COMMAND accord_early_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1)
foreach(program IN ITEMS both_ways messages probed_messages persistent_messages)
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
  set(test mpi.${flavour}.both_ways.windows.${outbox})
  accord_mpi_test(NAME ${test} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_both_ways_${flavour} windows PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_LOG=info ACCORD_OUTBOX_BYTES=${outbox})
  set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION
    "[(][0-9]?[0-9]?[0-9] of them lent;[2-9][0-9][0-9][0-9] of these moved.*[2-9][0-9][0-9][0-9] of these moved")
endforeach()
# None of the 50 that are sent to a late receiver; a first message may be.
set(test mpi.${flavour}.both_ways.late)
accord_mpi_test(NAME ${test} FLAVOUR ${flavour} RANKS 2
  COMMAND accord_both_ways_${flavour} late PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_LOG=info)
set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION "[(][0-9] of them lent;[1-9][0-9] of these moved")
foreach(program IN ITEMS message_rules message_threads)
  accord_mpi_test(NAME mpi.${flavour}.${program} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_${program}_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_LOG=info)
  set_tests_properties(mpi.${flavour}.${program} PROPERTIES FAIL_REGULAR_EXPRESSION "by headers .0 of them lent")
endforeach()
accord_mpi_test(NAME mpi.${flavour}.message_threads.staged FLAVOUR ${flavour} RANKS 2
  COMMAND accord_message_threads_${flavour} staged PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=0)
# Who fetches them.
if(flavour MATCHES "openmpi")
  set(messages mpi.${flavour}.both_ways)
  foreach(way IN ITEMS copy-kernel copy-engine)
    accord_mpi_test(NAME ${messages}.${way} FLAVOUR ${flavour} RANKS 2
      COMMAND accord_both_ways_${flavour} windows PRELOAD accord LABELS mpi TIMEOUT 60
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_ALGORITHM=send:${way} ACCORD_LOG=info ACCORD_LINGER_US=60000)
  endforeach()
  set_tests_properties(${messages}.copy-kernel PROPERTIES FAIL_REGULAR_EXPRESSION "[(]0 of them by a kernel")
  set_tests_properties(${messages}.copy-engine PROPERTIES FAIL_REGULAR_EXPRESSION "[(][1-9][0-9]* of them by a kernel")
endif()
