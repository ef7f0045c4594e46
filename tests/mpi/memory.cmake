# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: what the library takes of a device, of one communicator, with messages, which give
# it back once none has come for a while, and of many.
accord_mpi_test(NAME mpi.${flavour}.most_memory FLAVOUR ${flavour} RANKS 2
  COMMAND accord_most_memory_${flavour} 64 PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host)
set(memory accord_device_memory_${flavour})
accord_mpi_test(NAME mpi.${flavour}.device_memory.one FLAVOUR ${flavour} RANKS 2
  COMMAND ${memory} 1 67108864 64 PRELOAD accord LABELS mpi TIMEOUT 120 ENVIRONMENT ACCORD_RUNTIME=host)
accord_mpi_test(NAME mpi.${flavour}.device_memory.messages FLAVOUR ${flavour} RANKS 2
  COMMAND ${memory} 2 4194304 64 messages PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_DEVICE_IDLE_MS=10)
accord_mpi_test(NAME mpi.${flavour}.device_memory.idle FLAVOUR ${flavour} RANKS 2
  COMMAND ${memory} 3 4194304 64 idle PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_DEVICE_IDLE_MS=50)
accord_mpi_test(NAME mpi.${flavour}.device_memory.bounded FLAVOUR ${flavour} RANKS 2
  COMMAND ${memory} 3 4194304 8 messages PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_DEVICE_IDLE_MS=10 ACCORD_DEVICE_BYTES=8M)
if(flavour STREQUAL "openmpi")
  accord_mpi_test(NAME mpi.${flavour}.device_memory.many FLAVOUR ${flavour} RANKS 8
    COMMAND ${memory} 50 65536 96 PRELOAD accord LABELS mpi TIMEOUT 300
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_INBOX_CALLS=2)
endif()
