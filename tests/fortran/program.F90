! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Calls of a Fortran program on device memory, by the interface that it was compiled for.
#include "interface.h"
program accord_fortran
  USE_MPI
  use device
  use messages
  use collectives
  use types
  use callbacks
#if defined(INTERFACE_F08)
  use sections
#endif
  implicit none
  DECLARE_MPI
  integer :: ierror, wrong
  call MPI_Init(ierror)
  call check_messages()
  call check_collectives()
  call check_types()
  call check_callbacks()
#if defined(INTERFACE_F08)
  call check_sections()
#endif
  call MPI_Allreduce(failures, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (wrong > 0) error stop 1
end program
