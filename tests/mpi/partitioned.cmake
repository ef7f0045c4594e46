# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: partitioned communication.
# Straight between the ranks' buffers and by messages of the host MPI, these in pieces.
foreach(row IN ITEMS "straight" "messages ACCORD_TEST_PARTITIONED=messages" "declined ACCORD_TEST_PARTITIONED=decline"
                     "late ACCORD_TEST_COPY_POLLS=3"
                     "messages_late ACCORD_TEST_PARTITIONED=messages ACCORD_TEST_COPY_POLLS=3")
  separate_arguments(row)
  list(POP_FRONT row name)
  accord_mpi_test(NAME mpi.${flavour}.partitioned.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_partitioned_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_CHUNK_BYTES=64K ${row})
endforeach()
foreach(row IN ITEMS "straight" "messages ACCORD_TEST_PARTITIONED=messages" "declined ACCORD_TEST_PARTITIONED=decline")
  separate_arguments(row)
  list(POP_FRONT row name)
  accord_mpi_test(NAME mpi.${flavour}.partitioned.errors.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_partitioned_errors_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ${row})
  accord_mpi_test(NAME mpi.${flavour}.partitioned.waited.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_partitioned_drivers_${flavour} waited PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ${row})
endforeach()
# Allreduces by kernels within a node, and where these cannot be.
foreach(row IN ITEMS "kernels kernels" "late kernels ACCORD_TEST_COPY_POLLS=3"
                     "messages messages ACCORD_TEST_PARTITIONED=messages"
                     "declined messages ACCORD_TEST_PARTITIONED=decline")
  separate_arguments(row)
  list(POP_FRONT row name way)
  accord_mpi_test(NAME mpi.${flavour}.partitioned_allreduce.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_partitioned_allreduce_${flavour} ${way} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ${row})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.partitioned.host FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_errors_${flavour} host PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_PARTITIONED=host)
# Nobody named: with memory that stands in for a device's, Accord carries it; with none, the MPI does where it is right.
set(who host)
if(flavour MATCHES "openmpi")
  set(who accord)
endif()
foreach(row IN ITEMS "default auto accord" "no_device cuda ${who}")
  separate_arguments(row)
  list(POP_FRONT row name runtime carrier)
  accord_mpi_test(NAME mpi.${flavour}.partitioned.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_partitioned_errors_${flavour} default ${carrier}
    PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=${runtime} CUDA_VISIBLE_DEVICES=-1 HIP_VISIBLE_DEVICES=-1)
endforeach()
accord_mpi_test(NAME mpi.${flavour}.partitioned.kernels FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_kernels_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.partitioned.unattended FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_kernels_${flavour} unattended PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_PROGRESS_THREAD=on)
if(flavour MATCHES "openmpi")  # the only one that calls others while it waits
  accord_mpi_test(NAME mpi.${flavour}.partitioned.blocked FLAVOUR ${flavour} RANKS 2
    COMMAND accord_partitioned_kernels_${flavour} blocked PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_PROGRESS_THREAD=off)
endif()
# Messages whole, in pieces, and where copies and what is marked come late; between nodes, where no kernels reduce;
# reductions in rank order.
foreach(row IN ITEMS "whole" "pieces ACCORD_CHUNK_BYTES=1K" "late ACCORD_TEST_COPY_POLLS=3" "nodes ACCORD_NODE_SPLIT=1"
                     "deterministic ACCORD_DETERMINISTIC=1")
  separate_arguments(row)
  list(POP_FRONT row name)
  accord_mpi_test(NAME mpi.${flavour}.partitioned_collectives.${name} FLAVOUR ${flavour} RANKS ${ranks}
    COMMAND accord_partitioned_collectives_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ${row})
endforeach()
# Those of device memory within a node: which way they go is looked at. More ranks than two only with Open MPI, as above.
foreach(row IN ITEMS "kernels kernels 2" "kernels3 kernels 3" "kernels4 kernels 4"
                     "kernels_late kernels 2 ACCORD_TEST_COPY_POLLS=3"
                     "messages messages 2 ACCORD_TEST_PARTITIONED=messages"
                     "declined messages 2 ACCORD_TEST_PARTITIONED=decline"
                     "declined3 messages 3 ACCORD_TEST_PARTITIONED=decline")
  separate_arguments(row)
  list(POP_FRONT row name way count)
  if(count GREATER 2 AND NOT flavour MATCHES "openmpi")
    continue()
  endif()
  accord_mpi_test(NAME mpi.${flavour}.partitioned_collectives.${name} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_partitioned_collectives_${flavour} ${way} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ${row})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.partitioned.oneself FLAVOUR ${flavour} RANKS 1
  COMMAND accord_partitioned_drivers_${flavour} oneself PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_HOST_DEVICES=2)
accord_mpi_test(NAME mpi.${flavour}.partitioned.unpinned FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_drivers_${flavour} unpinned PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_PIN=none)
accord_mpi_test(NAME mpi.${flavour}.partitioned.costs FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_costs_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.partitioned.costs.host FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_costs_${flavour} host 4 PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_PARTITIONED=accord)
accord_mpi_test(NAME mpi.${flavour}.partitioned.traced FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_kernels_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TRACE=1)
set_tests_properties(mpi.${flavour}.partitioned.traced PROPERTIES PASS_REGULAR_EXPRESSION
  "psend 1024 B device, 8 partitions to [01] -> kernel .asked for. [0-9.]+ us")
# Between nodes, where copies take their time: what overlaps; and the program that measures what that is worth.
accord_mpi_test(NAME mpi.${flavour}.partitioned.overlap FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_overlap_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1 ACCORD_HOST_MACHINE=pcie4 ACCORD_HOST_SLOWDOWN=12500)
if(ranks GREATER 2)
  accord_mpi_test(NAME mpi.${flavour}.partitioned.overlap4 FLAVOUR ${flavour} RANKS 4
    COMMAND accord_partitioned_overlap_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1 ACCORD_HOST_MACHINE=pcie4 ACCORD_HOST_SLOWDOWN=12500)
endif()
accord_mpi_test(NAME mpi.${flavour}.partitioned.ready FLAVOUR ${flavour} RANKS 2
  COMMAND accord_partitioned_ready_${flavour} 1 16 128 PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1)
# The example of docs/partitioned.md.
mpi_test_program(partitioned_ring ${flavour} "${PROJECT_SOURCE_DIR}/examples/partitioned_ring.cpp")
accord_mpi_test(NAME mpi.${flavour}.partitioned.ring FLAVOUR ${flavour} RANKS ${ranks}
  COMMAND accord_partitioned_ring_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host)
set_tests_properties(mpi.${flavour}.partitioned.ring PROPERTIES PASS_REGULAR_EXPRESSION ": correct")
# A workload that checks its results itself; examples/ has more. Kernels move the data, and a thread what is left, or
# else the ranks do in their next calls.
mpi_test_program(partitioned_vector_add ${flavour} "${PROJECT_SOURCE_DIR}/examples/partitioned_vector_add.cpp")
foreach(who IN ITEMS "kernel 2 ACCORD_PARTITIONED_COPY=kernel ACCORD_PROGRESS_THREAD=on" "host 3")
  separate_arguments(who)
  list(POP_FRONT who mover count)
  accord_mpi_test(NAME mpi.${flavour}.partitioned.vector_add.${mover} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_partitioned_vector_add_${flavour} 65536 10 PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ${who})
endforeach()
