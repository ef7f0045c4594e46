! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Adds up a vector over all ranks in device memory, and checks the sum: allreduce_device.c in Fortran.
! The module accord gives memory of the accelerator where there is one, else of the embedded host
! runtime, so this runs on any machine. The MPI call is an ordinary MPI_Allreduce.
!
!   mpif90 ../include/accord/accord.f90 allreduce_device.f90 -o allreduce_device \
!          -Wl,--no-as-needed -L ../build/lib -laccord -Wl,-rpath,$PWD/../build/lib
!   mpiexec -n 4 ./allreduce_device            (linked with -laccord: no accord run is needed)
program allreduce_device
  use mpi_f08
  use accord
  use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_loc, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none

  integer, parameter :: n = 2**20
  integer(c_size_t), parameter :: bytes = 8_c_size_t * n
  real(c_double), allocatable, target :: on_host(:)
  real(c_double), pointer :: vector(:), total(:)  ! only MPI calls and kernels may touch their elements
  type(c_ptr) :: vector_address, total_address
  integer :: rank, ranks, wrong, i

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call choose_device()

  allocate (on_host(n))
  on_host = [((rank + 1.0_c_double) * mod(i, 1000), i = 1, n)]
  call check(accord_malloc(vector_address, bytes, ACCORD_MEMORY_DEVICE), "accord_malloc")
  call check(accord_malloc(total_address, bytes, ACCORD_MEMORY_DEVICE), "accord_malloc")
  call check(accord_memcpy(vector_address, c_loc(on_host), bytes), "accord_memcpy")
  call c_f_pointer(vector_address, vector, [n])
  call c_f_pointer(total_address, total, [n])

  call MPI_Allreduce(vector, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)

  call check(accord_memcpy(c_loc(on_host), total_address, bytes), "accord_memcpy")
  wrong = count(on_host /= [(ranks * (ranks + 1) / 2.0_c_double * mod(i, 1000), i = 1, n)])
  call check(accord_free(vector_address), "accord_free")
  call check(accord_free(total_address), "accord_free")

  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) then
    print '(a, i0, 3a, i0, 2a)', "allreduce of ", n, " doubles in ", accord_runtime_name(), " memory over ", ranks, &
      " ranks: ", merge("correct", "WRONG  ", wrong == 0)
  end if
  call MPI_Finalize()
  if (wrong > 0) error stop 1

contains

  ! Ends the job with the reason when an Accord call failed.
  subroutine check(code, name)
    integer(c_int), intent(in) :: code
    character(*), intent(in) :: name
    if (code == ACCORD_OK) return
    write (error_unit, '(3a)') name, ": ", accord_last_error()
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  ! Ranks of one node take its devices in turn.
  subroutine choose_device()
    type(MPI_Comm) :: node
    integer :: local_rank
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, local_rank)
    call MPI_Comm_free(node)
    call check(accord_set_device(mod(local_rank, accord_device_count())), "accord_set_device")
  end subroutine
end program
