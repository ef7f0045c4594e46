! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! What only mpi_f08 has: sections of arrays as buffers, where the MPI takes these, and large counts.
! Without MPI_SUBARRAYS_SUPPORTED the compiler copies sections on the CPU, which device memory forbids.
#include "interface.h"
module sections
  use mpi_f08
  use device
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: check_sections

  integer, parameter :: rows = 60, columns = 24, n = rows * columns
  integer :: rank, ranks, next, previous
  integer :: i
  integer, parameter :: ramp(n) = [(i, i = 1, n)]

contains

  subroutine check_sections()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    next = mod(rank + 1, ranks)
    previous = mod(rank - 1 + ranks, ranks)
    if (MPI_SUBARRAYS_SUPPORTED) then
      call every_third()
      call part_of_matrix()
      call in_collectives()
      call kept_for_later()
    end if
#if MPI_STANDARD >= 4
    call large_counts()
#endif
  end subroutine

  subroutine every_third()
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status
    integer, pointer :: from(:), to(:)
    integer :: count
    from => integers(ramp + 10000 * rank)
    to => integers(0 * ramp)
    call MPI_Irecv(to(2::3), n / 3, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(from(1::3), n / 3, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(all(contents(to) == [(merge(i - 1 + 10000 * previous, 0, mod(i, 3) == 2), i = 1, n)]), &
                "sections of MPI_Isend and MPI_Irecv")
    call MPI_Sendrecv(from(n:1:-1), n, MPI_INTEGER, next, 2, to, n, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call expect(all(contents(to) == ramp(n:1:-1) + 10000 * previous) .and. count == n, "a section that runs backwards")
    call discard(from)
    call discard(to)
  end subroutine

  subroutine part_of_matrix()
    integer, pointer :: numbers(:), matrix(:, :)
    integer, allocatable :: expected(:, :), whole(:, :)
    numbers => integers(ramp * merge(1, 0, rank == 0))
    matrix(1:rows, 1:columns) => numbers
    call MPI_Bcast(matrix(3:30:9, 5::2), 4 * 10, MPI_INTEGER, 0, MPI_COMM_WORLD)
    whole = reshape(ramp, [rows, columns])
    expected = whole * merge(1, 0, rank == 0)
    expected(3:30:9, 5::2) = whole(3:30:9, 5::2)
    call expect(all(contents(numbers) == reshape(expected, [n])), "a section of MPI_Bcast")
    call discard(numbers)
  end subroutine

  subroutine in_collectives()
    integer, pointer :: from(:), to(:)
    integer :: q
    from => integers(ramp + 10000 * rank)
    to => integers([(0, i = 1, 2 * 100 * ranks)])
    call MPI_Allgather(from(1:200:2), 100, MPI_INTEGER, to, 100, MPI_INTEGER, MPI_COMM_WORLD)
    associate (got => contents(to))
      call expect(all(got(:100 * ranks) == [((2 * i - 1 + 10000 * q, i = 1, 100), q = 0, ranks - 1)]), &
                  "a section of MPI_Allgather")
    end associate
    call discard(from)
    call discard(to)
  end subroutine

  ! What the binding makes of a section is freed before the request is complete.
  subroutine kept_for_later()
    type(MPI_Request) :: requests(3)
    integer, pointer :: from(:), to(:), all_of(:)
    integer :: round
    from => integers(ramp + 10000 * rank)
    to => integers(0 * ramp)
    all_of => integers(ramp * merge(1, 0, rank == ranks - 1))
    call MPI_Recv_init(to(2::4), n / 4, MPI_INTEGER, previous, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Send_init(from(1::4), n / 4, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2))
    do round = 1, 3
      call MPI_Ibcast(all_of(round::3), n / 3, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, requests(3))
      call MPI_Startall(2, requests)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call expect(all(contents(to) == [(merge(i - 1 + 10000 * previous, 0, mod(i, 4) == 2), i = 1, n)]), &
                "sections of persistent requests")
    call expect(all(contents(all_of) == ramp), "sections of MPI_Ibcast")
    call discard(from)
    call discard(to)
    call discard(all_of)
  end subroutine

#if MPI_STANDARD >= 4
  ! Counts of the kind MPI_COUNT_KIND choose the large-count form.
  subroutine large_counts()
    type(MPI_Request) :: requests(2)
    type(MPI_Datatype) :: pairs
    real(real64), pointer :: sums(:)
    integer, pointer :: from(:), to(:)
    integer(MPI_COUNT_KIND), parameter :: many = n
    sums => doubles([(i * (rank + 1.0_real64), i = 1, n)])
    call MPI_Allreduce(MPI_IN_PLACE, sums, many, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call expect(all(contents(sums) == [(i * (ranks * (ranks + 1) / 2.0_real64), i = 1, n)]), "MPI_Allreduce of a large count")
    call expect_path("MPI_Allreduce of a large count")
    from => integers(ramp + 10000 * rank)
    to => integers(0 * ramp)
    call MPI_Type_contiguous(2_MPI_COUNT_KIND, MPI_INTEGER, pairs)
    call MPI_Type_commit(pairs)
    call MPI_Irecv(to, many / 2, pairs, previous, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(from, many, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call expect(all(contents(to) == ramp + 10000 * previous), "messages of a large count")
    call MPI_Type_free(pairs)
    call discard(sums)
    call discard(from)
    call discard(to)
  end subroutine
#endif
end module
