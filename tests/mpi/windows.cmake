# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# One-sided calls on device memory, within a node and between nodes of pretence.
# Open MPI 4.1 has no windows where threads are allowed and processes may not read each other, as in these tests.
if(flavour STREQUAL "debian-openmpi")
  return()
endif()
set(windows mpi.${flavour}.windows)
set(on_nodes ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1)
foreach(count IN ITEMS 2 3)
  accord_mpi_test(NAME ${windows}.direct.${count} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_windows_${flavour} direct PRELOAD accord LABELS mpi TIMEOUT 120 ENVIRONMENT ACCORD_RUNTIME=host)
  accord_mpi_test(NAME ${windows}.messages.${count} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_windows_${flavour} messages PRELOAD accord LABELS mpi TIMEOUT 120 ENVIRONMENT ${on_nodes})
endforeach()
accord_mpi_test(NAME ${windows}.refused FLAVOUR ${flavour} RANKS 2
  COMMAND accord_windows_${flavour} refused PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ${on_nodes} ACCORD_PROGRESS_THREAD=off)
foreach(split IN ITEMS off 1)
  accord_mpi_test(NAME ${windows}.threads.${split} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_windows_${flavour} threads PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=${split})
endforeach()
if(flavour IN_LIST thorough)
  # Random programs against a model; on host memory they show that the model is as the host MPI.
  foreach(memory IN ITEMS host device mixed)
    accord_mpi_test(NAME mpi.${flavour}.window_programs.${memory} FLAVOUR ${flavour} RANKS 3
      COMMAND accord_window_programs_${flavour} --seed 1 --count 50 --memory ${memory} PRELOAD accord LABELS mpi TIMEOUT 120
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_COPY_POLLS=2)
  endforeach()
  accord_mpi_test(NAME mpi.${flavour}.window_programs.nodes FLAVOUR ${flavour} RANKS 3
    COMMAND accord_window_programs_${flavour} --seed 1001 --count 50 PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${on_nodes})
  # Long puts and gets by a design, where one is asked for.
  foreach(row IN ITEMS "none messages" "staged messages ACCORD_NET_DESIGN=direct ACCORD_ALGORITHM=net_send:staged"
                       "direct network ACCORD_NET_DESIGN=direct"
                       "late network ACCORD_NET_DESIGN=direct ACCORD_TEST_COPY_POLLS=3"
                       "passive network ACCORD_NET_DESIGN=passive" "active1 network ACCORD_NET_DESIGN=active1"
                       "active2 network ACCORD_NET_DESIGN=active2")
    separate_arguments(row)
    list(POP_FRONT row name way)
    if(way STREQUAL "network" AND NOT ACCORD_UCX_LIBRARY)
      continue()
    endif()
    accord_mpi_test(NAME ${windows}.by_${way}.${name} FLAVOUR ${flavour} RANKS 2
      COMMAND accord_window_network_${flavour} ${way} PRELOAD accord LABELS mpi TIMEOUT 120
      ENVIRONMENT ${on_nodes} ${ACCORD_UCX_ENVIRONMENT} ACCORD_UCX_TLS=tcp ACCORD_PROXY_CHUNK_BYTES=64K ${row})
    # The same, and short ones that are one run.
    if(way STREQUAL "network" AND NOT name STREQUAL "late")
      accord_mpi_test(NAME mpi.${flavour}.window_programs.${name} FLAVOUR ${flavour} RANKS 3
        COMMAND accord_window_programs_${flavour} --seed 2001 --count 30 --memory device PRELOAD accord LABELS mpi TIMEOUT 120
        ENVIRONMENT ${on_nodes} ${ACCORD_UCX_ENVIRONMENT} ACCORD_NET_BYTES=32 ${row})
    endif()
  endforeach()
endif()
