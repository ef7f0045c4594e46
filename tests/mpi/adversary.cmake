# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: partitioned requests, messages by headers and windows over an adversarial MPI (tests/adversary).
# Programs that send messages count on the host MPI to buffer short ones, headers among them: no send of theirs is made
# synchronous. All are where "messages" leaves out what nobody receives meanwhile.
foreach(program IN ITEMS messages message_rules probed_messages partitioned partitioned_collectives windows)
  accord_adversary_program(accord_${program}_${flavour} ${flavour} accord)
endforeach()
foreach(row IN ITEMS "partitioned.straight 1 partitioned"
                     "partitioned.messages 1 partitioned ACCORD_TEST_PARTITIONED=messages ACCORD_CHUNK_BYTES=64K"
                     "partitioned.thread 1 partitioned ACCORD_PROGRESS_THREAD=on"
                     "partitioned_collectives.whole 1 partitioned_collectives"
                     "partitioned_collectives.nodes 1 partitioned_collectives ACCORD_NODE_SPLIT=1"
                     "messages 0 messages single" "messages.synchronous 2 messages unbuffered"
                     "probed_messages 0 probed_messages single" "message_rules 0 message_rules"
                     "windows.direct 1 windows direct" "windows.messages 1 windows messages ACCORD_NODE_SPLIT=1"
                     "windows.threads 1 windows threads")
  separate_arguments(row)
  list(POP_FRONT row name synchronous program)
  set(arguments ${row})
  list(FILTER arguments EXCLUDE REGEX "=")
  list(FILTER row INCLUDE REGEX "=")
  set(test mpi.${flavour}.adversary.${name})
  accord_mpi_test(NAME ${test} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_${program}_${flavour}_adversary ${arguments} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_OUTBOX_BYTES=64K
                ACCORD_TEST_ADVERSARY_SENDS=${synchronous} ${row})
  set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION " 0 (looks refused|pauses)")
endforeach()
