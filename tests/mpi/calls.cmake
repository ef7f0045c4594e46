# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for each flavour: which way collectives, files and what programs do besides take.
foreach(way IN ITEMS "node ACCORD_INBOX_BYTES=0" "inbox ACCORD_INBOX_CALLS=1")
  separate_arguments(way)
  list(POP_FRONT way name)
  accord_mpi_test(NAME mpi.${flavour}.reductions.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_reductions_${flavour} ${name} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${way})
  accord_mpi_test(NAME mpi.${flavour}.ways.${name} FLAVOUR ${flavour} RANKS 3
    COMMAND accord_ways_${flavour} ${name} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${way})
endforeach()
if(TARGET accord_ze_driver AND ACCORD_LEVEL_ZERO_KERNELS_BUILT)
  accord_mpi_test(NAME mpi.${flavour}.reductions.level_zero FLAVOUR ${flavour} RANKS 2
    COMMAND accord_reductions_${flavour} node PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${ACCORD_LEVEL_ZERO_ENVIRONMENT} ACCORD_INBOX_BYTES=0)
  accord_mpi_test(NAME mpi.${flavour}.reductions.level_zero_inbox FLAVOUR ${flavour} RANKS 2
    COMMAND accord_reductions_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${ACCORD_LEVEL_ZERO_ENVIRONMENT} ACCORD_INBOX_CALLS=1)
  accord_mpi_test(NAME mpi.${flavour}.ways.level_zero_inbox FLAVOUR ${flavour} RANKS 3
    COMMAND accord_ways_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${ACCORD_LEVEL_ZERO_ENVIRONMENT} ACCORD_INBOX_CALLS=1)
endif()
if(TARGET accord_hip_stand_in AND ACCORD_HIP_KNOWN)
  accord_mpi_test(NAME mpi.${flavour}.reductions.hip_inbox FLAVOUR ${flavour} RANKS 2
    COMMAND accord_reductions_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${ACCORD_HIP_ENVIRONMENT} ACCORD_INBOX_CALLS=1)
endif()
foreach(way IN ITEMS "node ACCORD_INBOX_BYTES=0" "inbox ACCORD_DIRECT_BYTES=0"
                     "node-direct ACCORD_ALGORITHM=node-direct"
                     "two-level ACCORD_ALGORITHM=two-level ACCORD_NODE_SPLIT=1 ACCORD_PARCEL_BYTES=512"
                     "nccl ACCORD_ALGORITHM=nccl ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>")
  separate_arguments(way)
  list(POP_FRONT way name)
  accord_mpi_test(NAME mpi.${flavour}.persistent.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_persistent_${flavour} ${name} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ${regions} ${way})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.arrays FLAVOUR ${flavour} RANKS 2
  COMMAND accord_arrays_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_BYTES=1)
accord_mpi_test(NAME mpi.${flavour}.check FLAVOUR ${flavour} RANKS 1
  COMMAND accord_check_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host ACCORD_CHECK=1)
accord_mpi_test(NAME mpi.${flavour}.check.off FLAVOUR ${flavour} RANKS 1
  COMMAND accord_check_${flavour} off PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.late FLAVOUR ${flavour} RANKS 3
  COMMAND accord_late_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ${regions} ACCORD_INBOX_BYTES=0)
target_include_directories(accord_program_copies_${flavour} PRIVATE "${PROJECT_SOURCE_DIR}/src")
# The driver's synchronous calls return before they have landed; and one that takes no flag against that.
if(TARGET accord_fake_cuda)
  foreach(way IN ITEMS "defaults" "staged ACCORD_NODE_BYTES=0 ACCORD_P2P_BYTES=0"
                       "straight ACCORD_NODE_BYTES=1 ACCORD_DIRECT_BYTES=1 ACCORD_INBOX_CALLS=1 ACCORD_P2P_BYTES=64"
                       "without_flag FAKE_CUDA_NO_FLAG=1")
    separate_arguments(way)
    list(POP_FRONT way name)
    accord_mpi_test(NAME mpi.${flavour}.program_copies.${name} FLAVOUR ${flavour} RANKS 2
      COMMAND accord_program_copies_${flavour} 2 PRELOAD accord accord_fake_cuda LABELS mpi TIMEOUT 120
      ENVIRONMENT ACCORD_RUNTIME=cuda ACCORD_PARTITIONED=accord ${way})
  endforeach()
  accord_mpi_test(NAME mpi.${flavour}.program_copies.changing FLAVOUR ${flavour} RANKS 2
    COMMAND accord_program_copies_${flavour} 2 65536 changing PRELOAD accord accord_fake_cuda LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=cuda ACCORD_PARTITIONED=accord)
endif()
foreach(name IN ITEMS types requests)
  if(name STREQUAL "requests" AND flavour STREQUAL "debian-mpich") # 4.0.2 holds a lock there that MPI_Iprobe takes
    continue()
  endif()
  accord_mpi_test(NAME mpi.${flavour}.callbacks.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_callbacks_${flavour} ${name} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_NODE_BYTES=1 ACCORD_PROGRESS_THREAD=on)
endforeach()
# With a progress thread MPICH holds a lock where it calls the handler. Staged: by requests of the host MPI.
foreach(row IN ITEMS "alone 1 off" "threads 1 on" "staged 0 off")
  separate_arguments(row)
  list(POP_FRONT row name p2p_bytes)
  accord_mpi_test(NAME mpi.${flavour}.throws.${name} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_throws_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=${p2p_bytes} ACCORD_NODE_BYTES=1 ACCORD_PROGRESS_THREAD=${row})
endforeach()
foreach(row IN ITEMS "single 0 1" "threads 1 0")
  separate_arguments(row)
  list(GET row 0 mode)
  list(TRANSFORM row PREPEND ACCORD_ENABLE= AT 1 2)
  list(POP_FRONT row)
  accord_mpi_test(NAME mpi.${flavour}.enable.${mode} FLAVOUR ${flavour} RANKS 2
    COMMAND sh ${by_rank} ${row} -- $<TARGET_FILE:accord_enable_${flavour}> ${mode} PRELOAD accord LABELS mpi
    TIMEOUT 60 ENVIRONMENT ACCORD_RUNTIME=host ACCORD_PROGRESS_THREAD=on)
endforeach()
# All that can go by headers, and from device to device.
foreach(mode IN ITEMS single threads)
  accord_mpi_test(NAME mpi.${flavour}.finalize.${mode} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_finalize_${flavour} ${mode} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1 ACCORD_NODE_BYTES=1 ACCORD_PROGRESS_THREAD=on)
endforeach()
accord_mpi_test(NAME mpi.${flavour}.files FLAVOUR ${flavour} RANKS 2
  COMMAND accord_files_${flavour} "${CMAKE_CURRENT_BINARY_DIR}/files_${flavour}.bin" PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_P2P_BYTES=1)
foreach(order IN ITEMS session_first session_last messages two one_after_the_other)
  accord_mpi_test(NAME mpi.${flavour}.sessions.${order} FLAVOUR ${flavour} RANKS 2
    COMMAND accord_sessions_${flavour} ${order} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${regions} ACCORD_INBOX_BYTES=0)
endforeach()
accord_mpi_test(NAME mpi.${flavour}.aware FLAVOUR ${flavour} RANKS 1
  COMMAND accord_aware_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.repeated FLAVOUR ${flavour} RANKS 3
  COMMAND accord_repeated_${flavour} PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.comm_info FLAVOUR ${flavour} RANKS ${ranks}
  COMMAND accord_comm_info_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ${by_table} ACCORD_TABLE=${table})
accord_mpi_test(NAME mpi.${flavour}.comm_info.overruled FLAVOUR ${flavour} RANKS 2
  COMMAND accord_comm_info_${flavour} staged overruled PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ${by_table} ACCORD_ALGORITHM=staged)
foreach(way IN ITEMS kernel copies)
  accord_mpi_test(NAME mpi.${flavour}.packing.${way} FLAVOUR ${flavour} RANKS 1
    COMMAND accord_packing_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_PACK=${way})
endforeach()
foreach(way IN ITEMS "region node-pairs staged ACCORD_DIRECT_BYTES=0" "direct node-pairs staged ACCORD_DIRECT_BYTES=1"
                     "inbox inbox inbox ACCORD_INBOX_CALLS=1"
                     "mixed node-pairs inbox ACCORD_INBOX_CALLS=1 ACCORD_INBOX_BYTES=2K"
                     "by_name inbox inbox ACCORD_ALGORITHM=inbox"
                     "by_library nccl staged ACCORD_ALGORITHM=nccl ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>"
                     "nodes two-level-pairs staged ACCORD_NODE_SPLIT=0,1 ACCORD_TWO_LEVEL_BYTES=16K"
                     "nodes_by_default staged staged ACCORD_NODE_SPLIT=0,1"
                     "nodes_by_name two-level-pairs staged ACCORD_NODE_SPLIT=0,1 ACCORD_ALGORITHM=two-level"
                     "nodes_direct two-level-pairs-direct staged ACCORD_NODE_SPLIT=0,1 ACCORD_TWO_LEVEL_BYTES=16K ACCORD_NET_DESIGN=direct ACCORD_NET_BYTES=4K ACCORD_PACKED_PAIR_BYTES=4K"
                     "nodes_active1 two-level-pairs-active1 staged ACCORD_NODE_SPLIT=0,1 ACCORD_TWO_LEVEL_BYTES=16K ACCORD_NET_DESIGN=active1 ACCORD_NET_BYTES=4K ACCORD_PACKED_PAIR_BYTES=4K ACCORD_UCX_TLS=tcp"
                     "bundles two-level-pairs two-level-pairs ACCORD_NODE_SPLIT=0,1,2 ACCORD_TWO_LEVEL_BYTES=16K ACCORD_INBOX_CALLS=1")
  separate_arguments(way)
  list(POP_FRONT way name long_way short_way)
  set(number 3)
  if(name STREQUAL bundles)
    set(number 12)
  endif()
  accord_mpi_test(NAME mpi.${flavour}.pairs.${name} FLAVOUR ${flavour} RANKS ${number}
    COMMAND accord_pairs_${flavour} ${long_way} ${short_way} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_BYTES=4K ACCORD_REGION_BYTES=64K ${way})
endforeach()
accord_mpi_test(NAME mpi.${flavour}.turns FLAVOUR ${flavour} RANKS 2
  COMMAND accord_turns_${flavour} PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ACCORD_RUNTIME=host)
