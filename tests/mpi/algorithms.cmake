# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: errors, and which algorithm a call goes by.
# What the library says in the end, in place of the host MPI's words for a call that the program has not made.
accord_mpi_test(NAME mpi.${flavour}.errors.texts FLAVOUR ${flavour} RANKS 2
  COMMAND accord_errors_${flavour} texts PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.errors.aliased FLAVOUR ${flavour} RANKS 2
  COMMAND accord_errors_${flavour} aliased PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.errors.again FLAVOUR ${flavour} RANKS 2
  COMMAND accord_errors_${flavour} again PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_ALGORITHM=staged)
set(told "MPI_Recv on ocean of 2 ranks, rank 1")
accord_mpi_test(NAME mpi.${flavour}.errors.fatal FLAVOUR ${flavour} RANKS 2 UNTIL_TOLD "${told}"
  COMMAND accord_errors_${flavour} fatal PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host)
set_tests_properties(mpi.${flavour}.errors.fatal PROPERTIES
  PASS_REGULAR_EXPRESSION "${told}" FAIL_REGULAR_EXPRESSION "call_errhandler")
set(told "ACCORD_NODE_BYTES must be the same on all ranks, and is 32K on rank 0 and 48K on rank 1")
accord_mpi_test(NAME mpi.${flavour}.errors.settings FLAVOUR ${flavour} RANKS 2 UNTIL_TOLD "${told}"
  COMMAND "${PROJECT_SOURCE_DIR}/tests/conformance/by_rank.sh" ACCORD_NODE_BYTES=32K ACCORD_NODE_BYTES=48K --
          $<TARGET_FILE:accord_errors_${flavour}> texts
  PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host)
set_tests_properties(mpi.${flavour}.errors.settings PROPERTIES
  PASS_REGULAR_EXPRESSION "${told}" FAIL_REGULAR_EXPRESSION "call_errhandler")
foreach(way IN ITEMS "default all" "pipelined all ACCORD_ALGORITHM=staged-pipelined" "node all ACCORD_ALGORITHM=node"
                     "inbox all ACCORD_ALGORITHM=inbox" "host bcast ACCORD_NODE_BYTES=0 ACCORD_INBOX_BYTES=0")
  separate_arguments(way)
  list(POP_FRONT way name which)
  accord_mpi_test(NAME mpi.${flavour}.mismatch.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_mismatch_${flavour} ${which} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ${way})
endforeach()
# Each way by its name, with the path it shall take; chunks of the host MPI's call are in its own order. Of four ranks
# an MPI reduces pairs first (and chunks are not in rank order, so that they are not made). Regions so small that long
# calls take several chunks or pieces.
set(packets "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")  # whose CPUs keep packets whole
  set(packets packets:packets)
endif()
foreach(row IN ITEMS "staged:staged" "staged-pipelined:node-direct" "node:node" "node-one-shot:node"
                     "node-two-shot:node" "node-direct:node-direct" "node-direct-one-shot:node-direct"
                     "node-direct-two-shot:node-direct" "node-direct-spread:node-direct" "inbox:inbox" ${packets}
                     "node-host:node-host")
  string(REPLACE ":" ";" row "${row}")
  list(GET row 0 algorithm)
  list(GET row 1 path)
  accord_mpi_test(NAME mpi.${flavour}.deterministic.${algorithm} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_algorithms_${flavour} ${path} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_REGION_BYTES=16K ACCORD_DETERMINISTIC=1
                ACCORD_ALGORITHM=${algorithm})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.algorithms.pipelined FLAVOUR ${flavour} RANKS 2
  COMMAND accord_algorithms_${flavour} staged-pipelined any PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_ALGORITHM=staged-pipelined)
# Where the ranks are on two nodes of pretence: in two levels if asked for, and not where the order of ranks counts.
foreach(row IN ITEMS "two_level two-level any ACCORD_ALGORITHM=two-level"
                     "single_leader two-level any ACCORD_ALGORITHM=two-level-single-leader"
                     "in_rank_order staged ACCORD_ALGORITHM=two-level ACCORD_DETERMINISTIC=1")
  separate_arguments(row)
  list(POP_FRONT row name path)
  set(any "")
  if(row MATCHES "^any")
    list(POP_FRONT row any)
  endif()
  accord_mpi_test(NAME mpi.${flavour}.nodes.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_algorithms_${flavour} ${path} ${any} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=0,1 ACCORD_REGION_BYTES=16K ACCORD_PARCEL_BYTES=4K ${row})
endforeach()
# Between these nodes by each design, and by the host MPI where a rank has no UCX.
set(apart ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=0,1 ACCORD_REGION_BYTES=16K ACCORD_PARCEL_BYTES=4K ACCORD_UCX_TLS=tcp
          ACCORD_PROXY_CHUNK_BYTES=16K)
if(ACCORD_UCX_LIBRARY)
  foreach(design IN ITEMS direct passive active1 active2)
    accord_mpi_test(NAME mpi.${flavour}.nodes.by_${design} FLAVOUR ${flavour} RANKS ${ranks}
      COMMAND accord_algorithms_${flavour} two-level-${design} any PRELOAD accord LABELS mpi TIMEOUT 120
      ENVIRONMENT ${apart} ${ACCORD_UCX_ENVIRONMENT} ACCORD_ALGORITHM=two-level-${design})
  endforeach()
  accord_mpi_test(NAME mpi.${flavour}.nodes.by_setting FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_algorithms_${flavour} two-level-passive any PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${apart} ${ACCORD_UCX_ENVIRONMENT} ACCORD_ALGORITHM=two-level ACCORD_NET_DESIGN=passive ACCORD_NET_BYTES=1)
endif()
accord_mpi_test(NAME mpi.${flavour}.nodes.without_ucx FLAVOUR ${flavour} RANKS ${ranks}
  COMMAND accord_algorithms_${flavour} two-level any PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ${apart} ACCORD_ALGORITHM=two-level-direct ACCORD_TEST_NO_UCX=1)
foreach(row IN ITEMS "communicators" "few_tags 3")
  separate_arguments(row)
  list(POP_FRONT row name)
  accord_mpi_test(NAME mpi.${flavour}.nodes.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_nodes_${flavour} ${row} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=0,1 ACCORD_REGION_BYTES=16K ACCORD_ALGORITHM=two-level)
endforeach()
# By the rule through host memory where the ranks' kernels take turns, and where a turn takes long.
accord_mpi_test(NAME mpi.${flavour}.algorithms.in_turns FLAVOUR ${flavour} RANKS ${ranks}
  COMMAND accord_algorithms_${flavour} node-host any PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_EXCLUSIVE_DEVICE=1 ACCORD_TEST_TURN_US=150)
# Of one collective only, whatever is asked for of all.
accord_mpi_test(NAME mpi.${flavour}.algorithms.of_one FLAVOUR ${flavour} RANKS 2
  COMMAND accord_algorithms_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_ALGORITHM=allreduce:inbox,node)
# Where there is no accelerator, auto is the host runtime to a program that is linked with Accord.
accord_mpi_test(NAME mpi.${flavour}.algorithms.auto FLAVOUR ${flavour} RANKS 2
  COMMAND accord_algorithms_${flavour} node-direct LABELS mpi TIMEOUT 120 ENVIRONMENT ACCORD_RUNTIME=auto)
# To one that is not, nothing: its calls do not even vote.
accord_mpi_program(accord_not_linked_${flavour} ${flavour} not_linked.cpp)
accord_mpi_test(NAME mpi.${flavour}.algorithms.auto_not_linked FLAVOUR ${flavour} RANKS 2
  COMMAND accord_not_linked_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=auto CUDA_VISIBLE_DEVICES= ACCORD_TRACE=1)
set_tests_properties(mpi.${flavour}.algorithms.auto_not_linked PROPERTIES FAIL_REGULAR_EXPRESSION "votes")
accord_mpi_test(NAME mpi.${flavour}.algorithms.unknown FLAVOUR ${flavour} RANKS 2
  COMMAND accord_turns_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_ALGORITHM=inbx)
set_tests_properties(mpi.${flavour}.algorithms.unknown PROPERTIES PASS_REGULAR_EXPRESSION
  "ACCORD_ALGORITHM: .inbx. is none of the algorithms auto, staged, ")
# An allreduce of 12 KB by the rule (an inbox), as the table says, as the setting says whatever the table does; and by
# the rule again where the table cannot be read, is off on some rank, or was measured with another runtime.
foreach(row IN ITEMS "rule inbox ACCORD_TABLE=off" "used node ACCORD_TABLE=${table}"
                     "overruled staged ACCORD_TABLE=${table} ACCORD_ALGORITHM=staged")
  separate_arguments(row)
  list(POP_FRONT row name path)
  accord_mpi_test(NAME mpi.${flavour}.table.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_algorithms_${flavour} ${path} any PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${by_table} ${row})
endforeach()
file(READ "${table}" text)
string(REPLACE "\"runtime\": \"host\"" "\"runtime\": \"other\"" text "${text}")
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/other_table.json" "${text}")
accord_mpi_test(NAME mpi.${flavour}.table.of_other_runtime FLAVOUR ${flavour} RANKS 2
  COMMAND accord_algorithms_${flavour} inbox any PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ${by_table} ACCORD_TABLE=${CMAKE_CURRENT_BINARY_DIR}/other_table.json)
set_tests_properties(mpi.${flavour}.table.of_other_runtime PROPERTIES PASS_REGULAR_EXPRESSION
  "measured with the runtime other, which is not here.*0 failures")
accord_mpi_test(NAME mpi.${flavour}.table.damaged FLAVOUR ${flavour} RANKS 2
  COMMAND accord_algorithms_${flavour} inbox any PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ${by_table} ACCORD_TABLE=${CMAKE_CURRENT_LIST_FILE})
set_tests_properties(mpi.${flavour}.table.damaged PROPERTIES PASS_REGULAR_EXPRESSION
  "is not used: it is no JSON, or cut off; the built-in rule chooses.*0 failures")
set(one_off "test \"$PMI_RANK$OMPI_COMM_WORLD_RANK\" = 0 || export ACCORD_TABLE=${table}")
accord_mpi_test(NAME mpi.${flavour}.table.of_some_ranks FLAVOUR ${flavour} RANKS 2
  COMMAND sh -c "${one_off} && exec $<TARGET_FILE:accord_algorithms_${flavour}> inbox any"
  PRELOAD accord LABELS mpi TIMEOUT 120 ENVIRONMENT ${by_table})
set_tests_properties(mpi.${flavour}.table.of_some_ranks PROPERTIES PASS_REGULAR_EXPRESSION
  "not all ranks can read the same table.*0 failures")
# What the library says of a call is what the call does, where memory suffices for all communicators.
math(EXPR half "${ranks} / 2")
foreach(row IN ITEMS "node node" "nodes nodes ACCORD_NODE_SPLIT=${half}"
                     "designs nodes ACCORD_NODE_SPLIT=${half} ACCORD_NET_DESIGN=auto ACCORD_UCX_TLS=tcp")
  separate_arguments(row)
  list(POP_FRONT row name which)
  if(name STREQUAL "designs" AND NOT ACCORD_UCX_LIBRARY)
    continue()
  endif()
  accord_mpi_test(NAME mpi.${flavour}.explained.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_explained_${flavour} ${which} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_INBOX_CALLS=1 ACCORD_DEVICE_BYTES=8G ${row})
endforeach()
