# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: collectives by a collective library.
# By a collective library, of which there is a stand-in (tests/ccl), or not where something is the matter with it.
set(ccl ${regions} ACCORD_INBOX_BYTES=0 ACCORD_ALGORITHM=nccl ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>)
foreach(row IN ITEMS "way way nccl" "company company"
                     "replays replays ACCORD_CCL_GRAPH_BYTES=1M ACCORD_LOG=info"
                     "replays_late replays ACCORD_CCL_GRAPH_BYTES=1M ACCORD_LOG=info ACCORD_TEST_COPY_POLLS=3"
                     "fails_replaying fails FAKE_NCCL_FAIL_CALL=13 ACCORD_CCL_GRAPH_BYTES=1M ACCORD_LOG=info"
                     "lacks lacks" "none way node ACCORD_CCL_LIBRARIES=none"
                     "refused way node FAKE_NCCL_FAIL_INIT=1" "one_device way node ACCORD_TEST_EXCLUSIVE_DEVICE=1"
                     "old way node FAKE_NCCL_VERSION=21700"
                     "plugin plugin ACCORD_ALGORITHM=example ACCORD_CCL_PLUGIN=$<TARGET_FILE:ccl_example>"
                     "fails fails FAKE_NCCL_FAIL_CALL=3"
                     "fails_on_one fails FAKE_NCCL_FAIL_CALL=3 FAKE_NCCL_FAIL_RANK=1"
                     "fails_late fails FAKE_NCCL_FAIL_CALL=3 FAKE_NCCL_FAIL_LATE=1"
                     "fails_persistent fails_persistent FAKE_NCCL_FAIL_CALL=7"
                     "fails_persistent_on_one fails_persistent FAKE_NCCL_FAIL_CALL=7 FAKE_NCCL_FAIL_RANK=1"
                     # Between ranks that share no memory.
                     "nodes way nccl staged ACCORD_NODE_SPLIT=1" "nodes_company company ACCORD_NODE_SPLIT=1"
                     "nodes_many many ACCORD_NODE_SPLIT=1 ACCORD_TEST_WIRES=2"
                     "nodes_replays replays ACCORD_NODE_SPLIT=1 ACCORD_CCL_GRAPH_BYTES=1M ACCORD_LOG=info"
                     "nodes_lacks lacks - staged ACCORD_NODE_SPLIT=1 ACCORD_TWO_LEVEL_BYTES=8K"
                     "nodes_refused way staged staged ACCORD_NODE_SPLIT=1 ACCORD_TWO_LEVEL_BYTES=8K FAKE_NCCL_FAIL_INIT=1"
                     "nodes_fail_on_one fails ACCORD_NODE_SPLIT=1 FAKE_NCCL_FAIL_CALL=3 FAKE_NCCL_FAIL_RANK=1"
                     "nodes_fail_late fails ACCORD_NODE_SPLIT=1 FAKE_NCCL_FAIL_CALL=3 FAKE_NCCL_FAIL_LATE=1"
                     "nodes_fail_persistent fails_persistent ACCORD_NODE_SPLIT=1 FAKE_NCCL_FAIL_CALL=7
                      FAKE_NCCL_FAIL_RANK=1")
  separate_arguments(row)
  list(POP_FRONT row name)
  set(arguments ${row})
  set(environment ${row})
  list(FILTER arguments EXCLUDE REGEX "=")
  list(FILTER environment INCLUDE REGEX "=")
  accord_mpi_test(NAME mpi.${flavour}.ccl.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_ccl_${flavour} ${arguments} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${ccl} ${environment})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.comm_info.libraries FLAVOUR ${flavour} RANKS 2
  COMMAND accord_comm_info_${flavour} libraries PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host
              ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>,msccl:$<TARGET_FILE:fake_nccl>)
set_tests_properties(mpi.${flavour}.ccl.replays mpi.${flavour}.ccl.replays_late mpi.${flavour}.ccl.nodes_replays
                     mpi.${flavour}.ccl.fails_replaying PROPERTIES
  FAIL_REGULAR_EXPRESSION " 0 of them replayed")
# On streams: a call fails as it goes there, once others have been captured.
if(TARGET accord_hip_stand_in)
  accord_mpi_test(NAME mpi.${flavour}.ccl.fails_replaying_on_streams FLAVOUR ${flavour} RANKS 2
    COMMAND accord_ccl_${flavour} fails PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${ccl} ${ACCORD_HIP_ENVIRONMENT} ACCORD_TEST_HIP_DEVICES=2 ACCORD_ALGORITHM=rccl
                ACCORD_CCL_LIBRARIES=rccl:$<TARGET_FILE:fake_rccl> ACCORD_LOG=info FAKE_NCCL_FAIL_LAUNCH=5
                FAKE_NCCL_FAIL_RANK=1)
  set_tests_properties(mpi.${flavour}.ccl.fails_replaying_on_streams PROPERTIES
    FAIL_REGULAR_EXPRESSION " 0 of them replayed")
endif()
set_tests_properties(mpi.${flavour}.ccl.refused PROPERTIES PASS_REGULAR_EXPRESSION "ncclCommInitRank: .*another way")
