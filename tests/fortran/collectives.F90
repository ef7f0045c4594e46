! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Collectives on arrays in device memory. The constants of Fortran that stand for no buffer, as
! MPI_IN_PLACE, are addresses of variables, which only the MPI knows.
#include "interface.h"
module collectives
  USE_MPI
  use device
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: check_collectives
  DECLARE_MPI

  integer, parameter :: n = 500
  integer :: rank, ranks, ierror
  integer :: i
  integer, parameter :: ramp(n) = [(i, i = 1, n)]
  real(real64), parameter :: halves(n) = [(i / 2.0_real64, i = 1, n)]

contains

  subroutine check_collectives()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call moved()
    call in_blocks()
    call reduced()
    call reduced_in_place()
    call reduced_types()
    call nonblocking()
#if MPI_STANDARD >= 4 || defined(EXTENSIONS)
    call persistent()
#endif
  end subroutine

  ! 1 + 2 + ... + ranks
  integer function triangle()
    triangle = ranks * (ranks + 1) / 2
  end function

  subroutine moved()
    integer, pointer :: one(:), all_of(:)
    integer :: r
    one => integers(ramp * merge(1, 0, rank == 0))
    call MPI_Bcast(one, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect(all(contents(one) == ramp), "MPI_Bcast")
    call expect_path("MPI_Bcast")
    call discard(one)
    one => integers(ramp + 1000 * rank)
    all_of => integers([(0, i = 1, n * ranks)])
    call MPI_Gather(one, n, MPI_INTEGER, all_of, n, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (rank == 0) call expect(all(contents(all_of) == [((1000 * r + ramp(i), i = 1, n), r = 0, ranks - 1)]), "MPI_Gather")
    call discard(all_of)
    all_of => integers([((merge(1000 * r + ramp(i), 0, r == rank), i = 1, n), r = 0, ranks - 1)])
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(all(contents(all_of) == [((1000 * r + ramp(i), i = 1, n), r = 0, ranks - 1)]), "MPI_Allgather in place")
    call discard(all_of)
    call discard(one)
  end subroutine

  ! Blocks that differ: rank r sends r + q + 1 numbers to rank q.
  subroutine in_blocks()
    integer, pointer :: from(:), to(:)
    integer :: counts(ranks), places(ranks), q, k
    counts = [(rank + q + 1, q = 0, ranks - 1)]
    places = [(sum(counts(:q)), q = 0, ranks - 1)]
    from => integers([((100 * rank + q, k = 1, counts(q + 1)), q = 0, ranks - 1)])
    to => integers([(0, i = 1, sum(counts))])
    call MPI_Alltoallv(from, counts, places, MPI_INTEGER, to, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect(all(contents(to) == [((100 * q + rank, k = 1, counts(q + 1)), q = 0, ranks - 1)]), "MPI_Alltoallv")
    call discard(from)
    call discard(to)
  end subroutine

  subroutine reduced()
    real(real64), pointer :: from(:), to(:)
    from => doubles(halves * (rank + 1))
    to => doubles(0 * halves)
    call MPI_Allreduce(from, to, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(contents(to) == halves * triangle()), "MPI_Allreduce")
    call expect_path("MPI_Allreduce")
    call MPI_Scan(from, to, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(contents(to) == halves * ((rank + 1) * (rank + 2) / 2)), "MPI_Scan")
    call discard(from)
    call discard(to)
  end subroutine

  subroutine reduced_in_place()
    real(real64), pointer :: both(:)
    both => doubles(halves * (rank + 1))
    call MPI_Allreduce(MPI_IN_PLACE, both, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(contents(both) == halves * triangle()), "MPI_Allreduce in place")
    call discard(both)
    both => doubles(halves * (rank + 1))
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, both, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
      call expect(all(contents(both) == halves * ranks), "MPI_Reduce in place")
    else
      call MPI_Reduce(both, both, n, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
    end if
    call discard(both)
  end subroutine

  ! Of predefined types that only Fortran has.
  subroutine reduced_types()
    TYPE_T :: nine_digits
    real(real64), pointer :: pairs(:), complexes(:), chosen(:)
    integer, pointer :: answers(:)
    logical, parameter :: yes(2) = [.true., .false.]
    pairs => doubles([(real(mod(rank + i / 2, ranks), real64), real(rank, real64), i = 2, 2 * n, 2)])
    call MPI_Allreduce(MPI_IN_PLACE, pairs, n, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
    call expect(all(contents(pairs) == [(real(ranks - 1, real64), &
                                         real(mod(ranks - 1 - mod(i, ranks) + ranks, ranks), real64), i = 1, n)]), &
                "MPI_2DOUBLE_PRECISION")
    call discard(pairs)
    complexes => doubles([(0.0_real64, 1.0_real64, i = 1, n)])
    call MPI_Allreduce(MPI_IN_PLACE, complexes, n, MPI_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD, ierror)
    call expect(all(contents(complexes) == [(product_of_i(ranks), i = 1, n)]), "MPI_DOUBLE_COMPLEX")
    call discard(complexes)
    answers => integers([(transfer(yes(merge(1, 2, rank == 0 .or. mod(i, 2) == 0)), 0), i = 1, n)])
    call MPI_Allreduce(MPI_IN_PLACE, answers, n, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    call expect(all(transfer(contents(answers), yes, n) .eqv. [(mod(i, 2) == 0 .or. ranks == 1, i = 1, n)]), "MPI_LOGICAL")
    call discard(answers)
    chosen => doubles(halves)
    call MPI_Type_create_f90_real(15, MPI_UNDEFINED, nine_digits, ierror)
    call MPI_Allreduce(MPI_IN_PLACE, chosen, n, nine_digits, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(all(contents(chosen) == halves * ranks), "MPI_Type_create_f90_real")
    call discard(chosen)
  end subroutine

  ! The imaginary unit to this power, as two numbers.
  pure function product_of_i(power) result(parts)
    integer, intent(in) :: power
    real(real64) :: parts(2)
    complex(real64) :: value
    value = (0.0_real64, 1.0_real64) ** power
    parts = [real(value, real64), aimag(value)]
  end function

  subroutine nonblocking()
    REQUEST_T :: requests(2)
    real(real64), pointer :: sums(:)
    integer, pointer :: numbers(:)
    sums => doubles(halves * (rank + 1))
    numbers => integers(ramp * merge(1, 0, rank == ranks - 1))
    call MPI_Iallreduce(MPI_IN_PLACE, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Ibcast(numbers, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call expect(all(contents(sums) == halves * triangle()), "MPI_Iallreduce in place")
    call expect(all(contents(numbers) == ramp), "MPI_Ibcast")
    call discard(sums)
    call discard(numbers)
  end subroutine

#if MPI_STANDARD >= 4 || defined(EXTENSIONS)
  subroutine persistent()
    USE_PERSISTENT
    REQUEST_T :: request
    real(real64), pointer :: from(:), to(:)
    integer :: round
    DECLARE_PERSISTENT
    from => doubles(halves * (rank + 1))
    to => doubles(0 * halves)
    call MPI_Allreduce_init(from, to, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request, ierror)
    do round = 1, 3
      call MPI_Start(request, ierror)
      call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    end do
    call MPI_Request_free(request, ierror)
    call expect(all(contents(to) == halves * triangle()), "MPI_Allreduce_init")
    call discard(from)
    call discard(to)
  end subroutine
#endif
end module
