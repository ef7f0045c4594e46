# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: messages between nodes.
# Between nodes: by a design, staged where a rank has no UCX, or none is asked for; and what a sender's death comes
# to, where the launcher can be told to let its receiver be.
set(apart ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1)
set(by_rule staged)
file(GLOB rdma_adapters /dev/infiniband/uverbs*)
if(rdma_adapters)
  set(by_rule net-direct)
endif()
foreach(row IN ITEMS "direct net-direct ACCORD_NET_DESIGN=direct" "auto ${by_rule} ACCORD_NET_DESIGN=auto"
                     "late net-direct ACCORD_NET_DESIGN=direct ACCORD_TEST_COPY_POLLS=3"
                     "tcp net-direct ACCORD_NET_DESIGN=direct ACCORD_UCX_TLS=tcp"
                     "passive net-passive ACCORD_NET_DESIGN=passive ACCORD_UCX_TLS=tcp ACCORD_PROXY_CHUNK_BYTES=16K"
                     "active1 net-active1 ACCORD_NET_DESIGN=active1 ACCORD_UCX_TLS=tcp ACCORD_PROXY_CHUNK_BYTES=16K"
                     "active2 net-active2 ACCORD_NET_DESIGN=active2 ACCORD_UCX_TLS=tcp ACCORD_PROXY_CHUNK_BYTES=16K"
                     "host staged" "nothing staged ACCORD_NET_DESIGN=host"
                     "no_proxy net-direct ACCORD_NET_DESIGN=passive ACCORD_PROXY_PROGRAM=/nonexistent"
                     "no_active_proxy net-direct ACCORD_NET_DESIGN=active2 ACCORD_PROXY_PROGRAM=/nonexistent"
                     "no_pool net-direct ACCORD_NET_DESIGN=passive ACCORD_UCX_TLS=tcp ACCORD_PROXY_BYTES=64K"
                     "by_name net-direct ACCORD_ALGORITHM=net_send:direct"
                     "not_by_name staged ACCORD_NET_DESIGN=direct ACCORD_ALGORITHM=net_send:staged"
                     "by_table net-direct ACCORD_TABLE=${CMAKE_CURRENT_SOURCE_DIR}/net_table.json"
                     "not_by_table staged ACCORD_NET_DESIGN=host ACCORD_TABLE=${CMAKE_CURRENT_SOURCE_DIR}/net_table.json"
                     "without_ucx staged ACCORD_NET_DESIGN=direct ACCORD_TEST_NO_UCX=1")
  separate_arguments(row)
  list(POP_FRONT row name path)
  if(path MATCHES "^net-" AND NOT ACCORD_UCX_LIBRARY)
    continue()
  endif()
  accord_mpi_test(NAME mpi.${flavour}.net.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_net_${flavour} by ${path} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${apart} ${ACCORD_UCX_ENVIRONMENT} ${row})
endforeach()
if(ACCORD_UCX_LIBRARY)
  accord_mpi_test(NAME mpi.${flavour}.net.with_little_room FLAVOUR ${flavour} RANKS 2
    COMMAND accord_net_${flavour} with_little_room net-direct PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${apart} ${ACCORD_UCX_ENVIRONMENT} ACCORD_NET_DESIGN=direct ACCORD_OUTBOX_BYTES=2M)
endif()
# The proxy ends with its rank, its own death is an error, and who only asks does not wait for it.
foreach(row IN ITEMS passive active1 active2)
  foreach(test IN ITEMS goes dies dies_there is_tested)
    if(NOT ACCORD_UCX_LIBRARY OR (test MATCHES "there|tested" AND NOT row STREQUAL "active2"))
      continue()
    endif()
    accord_mpi_test(NAME mpi.${flavour}.net.proxy_${test}.${row} FLAVOUR ${flavour} RANKS 2
      COMMAND accord_net_proxy_${flavour} ${test} PRELOAD accord LABELS mpi TIMEOUT 120
      ENVIRONMENT ${apart} ${ACCORD_UCX_ENVIRONMENT} ACCORD_NET_DESIGN=${row} ACCORD_UCX_TLS=tcp
                  ACCORD_LOG=error)
    # It leaves without MPI_Finalize, which launchers do not like.
    if(test MATCHES "dies")
      set_tests_properties(mpi.${flavour}.net.proxy_${test}.${row} PROPERTIES
        PASS_REGULAR_EXPRESSION "rank 0 is told.*rank 1 is told|rank 1 is told.*rank 0 is told")
    endif()
  endforeach()
endforeach()
# A rank that is killed: its shell outlives it, for MPICH's launcher would kill the other one.
if(flavour STREQUAL "mpich" AND ACCORD_UCX_LIBRARY)
  foreach(row IN ITEMS sender:receiver scatter:root)
    string(REPLACE ":" ";" row "${row}")
    list(GET row 0 test)
    list(GET row 1 told)
    add_test(NAME mpi.mpich.net.${test}_dies
      COMMAND ${ACCORD_MPI_mpich_MPIEXEC} -n 2 sh -c "LD_PRELOAD=$0 \"$@\" || sleep 5" $<TARGET_FILE:accord>
              $<TARGET_FILE:accord_net_mpich> ${test}_dies)
    set_tests_properties(mpi.mpich.net.${test}_dies PROPERTIES LABELS mpi TIMEOUT 60 PROCESSORS 2
      PASS_REGULAR_EXPRESSION "0 failures; ${told}: accord: .*rank 1: " ENVIRONMENT
      "${apart};${ACCORD_UCX_ENVIRONMENT};ACCORD_NET_DESIGN=direct;ACCORD_UCX_TLS=tcp")
  endforeach()
endif()
