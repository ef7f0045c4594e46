! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Derived datatypes of device memory.
#include "interface.h"
module types
  USE_MPI
  use device
  implicit none
  private
  public :: check_types
  DECLARE_MPI

  integer, parameter :: rows = 40, columns = 30, n = rows * columns
  integer :: rank, ranks, next, previous, ierror
  integer :: i
  integer, parameter :: ramp(n) = [(i, i = 1, n)]

contains

  subroutine check_types()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    next = mod(rank + 1, ranks)
    previous = mod(rank - 1 + ranks, ranks)
    call subarray()
    call freed_at_once()
    call from_bottom()
    call each_its_own()
  end subroutine

  ! The inner part of a matrix goes into the same place of another one.
  subroutine subarray()
    TYPE_T :: inner
    integer, pointer :: from(:), to(:)
    integer, allocatable :: expected(:, :)
    call MPI_Type_create_subarray(2, [rows, columns], [10, 12], [3, 5], MPI_ORDER_FORTRAN, MPI_INTEGER, inner, ierror)
    call MPI_Type_commit(inner, ierror)
    from => integers(ramp + 10000 * rank)
    to => integers(0 * ramp)
    call MPI_Sendrecv(from, 1, inner, next, 1, to, 1, inner, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    expected = reshape(ramp + 10000 * previous, [rows, columns])
    expected(:3, :) = 0
    expected(14:, :) = 0
    expected(:, :5) = 0
    expected(:, 18:) = 0
    call expect(all(contents(to) == reshape(expected, [n])), "MPI_Type_create_subarray")
    call MPI_Type_free(inner, ierror)
    call discard(from)
    call discard(to)
  end subroutine

  ! A row, whose type is freed while it is on its way. In the program the matrices have two dimensions.
  subroutine freed_at_once()
    TYPE_T :: row
    REQUEST_T :: requests(2)
    integer, pointer :: from(:), to(:), from_matrix(:, :), to_matrix(:, :)
    integer, allocatable :: expected(:, :)
    from => integers(ramp + 10000 * rank)
    to => integers(0 * ramp)
    from_matrix(1:rows, 1:columns) => from
    to_matrix(1:rows, 1:columns) => to
    call MPI_Type_vector(columns, 1, rows, MPI_INTEGER, row, ierror)
    call MPI_Type_commit(row, ierror)
    call MPI_Irecv(to_matrix(2, 1), 1, row, previous, 2, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(from_matrix(7, 1), 1, row, next, 2, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Type_free(row, ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    allocate (expected(rows, columns), source=0)
    expected(2, :) = [(7 + rows * i, i = 0, columns - 1)] + 10000 * previous
    call expect(all(contents(to) == reshape(expected, [n])), "a type that is freed at once")
    call discard(from)
    call discard(to)
  end subroutine

  ! Two arrays by their addresses, from MPI_BOTTOM.
  subroutine from_bottom()
    TYPE_T :: both
    integer(MPI_ADDRESS_KIND) :: places(2)
    integer, pointer :: first(:), second(:)
    first => integers(ramp * merge(1, 0, rank == 0))
    second => integers(2 * ramp * merge(1, 0, rank == 0))
    call MPI_Get_address(first, places(1), ierror)
    call MPI_Get_address(second(11), places(2), ierror)
    call MPI_Type_create_hindexed(2, [n, n - 10], places, MPI_INTEGER, both, ierror)
    call MPI_Type_commit(both, ierror)
    call MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD, ierror)
    call expect(all(contents(first) == ramp), "the first array from MPI_BOTTOM")
    call expect(all(contents(second) == 2 * ramp .or. [(i <= 10 .and. rank > 0, i = 1, n)]), "the second array from MPI_BOTTOM")
    call MPI_Type_free(both, ierror)
    call discard(first)
    call discard(second)
  end subroutine

  ! A type for each rank. The blocking call, and one that waits for another call while the types, and the
  ! arrays that a Fortran binding may have made of them, are freed.
  subroutine each_its_own()
    TYPE_T :: kinds(ranks), again(ranks)
    REQUEST_T :: requests(2)
    integer :: ones(ranks), places(ranks), q
    integer, pointer :: from(:), to(:), sums(:)
    from => integers([((100 * rank + q, i = 1, rank + q + 1), q = 0, ranks - 1)])
    to => integers([(0, i = 1, size(from))])
    ones = 1
    do q = 0, ranks - 1
      call MPI_Type_contiguous(rank + q + 1, MPI_INTEGER, kinds(q + 1), ierror)
      call MPI_Type_commit(kinds(q + 1), ierror)
      call MPI_Type_dup(kinds(q + 1), again(q + 1), ierror)
      places(q + 1) = 4 * sum([(rank + i, i = 1, q)])
    end do
    call MPI_Alltoallw(from, ones, places, kinds, to, ones, places, kinds, MPI_COMM_WORLD, ierror)
    call expect(all(contents(to) == [((100 * q + rank, i = 1, rank + q + 1), q = 0, ranks - 1)]), "MPI_Alltoallw")
    call discard(to)
    to => integers([(0, i = 1, size(from))])
    sums => integers(ramp * (rank + 1))
    call MPI_Iallreduce(MPI_IN_PLACE, sums, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Ialltoallw(from, ones, places, kinds, to, ones, places, again, MPI_COMM_WORLD, requests(2), ierror)
    do q = 1, ranks
      call MPI_Type_free(kinds(q), ierror)
      call MPI_Type_free(again(q), ierror)
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call expect(all(contents(sums) == ramp * (ranks * (ranks + 1) / 2)), "MPI_Iallreduce before MPI_Ialltoallw")
    call expect(all(contents(to) == [((100 * q + rank, i = 1, rank + q + 1), q = 0, ranks - 1)]), "MPI_Ialltoallw")
    call discard(from)
    call discard(to)
    call discard(sums)
  end subroutine
end module
