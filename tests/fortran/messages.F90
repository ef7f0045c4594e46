! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Messages between arrays in device memory, by each way that a Fortran program can send one.
#include "interface.h"
module messages
  USE_MPI
  use device
  implicit none
  private
  public :: check_messages
  DECLARE_MPI

  integer, parameter :: n = 600
  integer :: rank, ranks, next, previous, ierror
  integer :: i
  integer, parameter :: ramp(n) = [(i, i = 1, n)]

contains

  subroutine check_messages()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    next = mod(rank + 1, ranks)
    previous = mod(rank - 1 + ranks, ranks)
    call blocking()
    call replaced()
    call nonblocking()
    call persistent()
    call matched()
    call buffered()
    call packed()
#if MPI_STANDARD >= 4
    call partitioned()
#endif
  end subroutine

  subroutine received(array, what)
    integer, pointer :: array(:)
    character(*), intent(in) :: what
    call expect(all(contents(array) == ramp + 1000 * previous), what)
    call discard(array)
  end subroutine

  subroutine blocking()
    STATUS_T :: status
    integer, pointer :: from(:), to(:)
    integer :: count
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    if (mod(rank, 2) == 0) then
      call MPI_Ssend(from, n, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
      call MPI_Recv(to, n, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, status, ierror)
    else
      call MPI_Recv(to, n, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, status, ierror)
      call MPI_Send(from, n, MPI_INTEGER, next, 1, MPI_COMM_WORLD, ierror)
    end if
    call MPI_Get_count(status, MPI_INTEGER, count, ierror)
    call expect(count == n, "the count of a message")
    call received(to, "MPI_Send, MPI_Recv")
    to => integers(0 * ramp)
    call MPI_Sendrecv(from, n, MPI_INTEGER, next, 2, to, n, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierror)
    call received(to, "MPI_Sendrecv")
    call discard(from)
  end subroutine

  subroutine replaced()
    integer, pointer :: both(:)
    both => integers(ramp + 1000 * rank)
    call MPI_Sendrecv_replace(both, n, MPI_INTEGER, next, 3, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call received(both, "MPI_Sendrecv_replace")
  end subroutine

  subroutine nonblocking()
    REQUEST_T :: requests(2)
    integer, pointer :: from(:), to(:)
    integer :: index
    logical :: done
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    call MPI_Irecv(to, n, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(from, n, MPI_INTEGER, next, 4, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call received(to, "MPI_Isend, MPI_Irecv")
    to => integers(0 * ramp)
    call MPI_Irecv(to, n, MPI_INTEGER, previous, 5, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Issend(from, n, MPI_INTEGER, next, 5, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, ierror)
    done = .false.
    do while (.not. done)
      call MPI_Testall(2, requests, done, MPI_STATUSES_IGNORE, ierror)
    end do
    call received(to, "MPI_Issend")
    call discard(from)
  end subroutine

  subroutine persistent()
    REQUEST_T :: requests(2)
    integer, pointer :: from(:), to(:)
    integer :: round
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    call MPI_Recv_init(to, n, MPI_INTEGER, previous, 6, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Send_init(from, n, MPI_INTEGER, next, 6, MPI_COMM_WORLD, requests(2), ierror)
    do round = 1, 3
      call MPI_Startall(2, requests, ierror)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    end do
    call MPI_Request_free(requests(1), ierror)
    call MPI_Request_free(requests(2), ierror)
    call received(to, "MPI_Send_init, MPI_Recv_init")
    call discard(from)
  end subroutine

  subroutine matched()
    MESSAGE_T :: message
    REQUEST_T :: request
    STATUS_T :: status
    integer, pointer :: from(:), to(:)
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    call MPI_Isend(from, n, MPI_INTEGER, next, 7, MPI_COMM_WORLD, request, ierror)
    call MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, message, status, ierror)
    call MPI_Mrecv(to, n, MPI_INTEGER, message, status, ierror)
    call MPI_Wait(request, status, ierror)
    call received(to, "MPI_Mprobe, MPI_Mrecv")
    call discard(from)
  end subroutine

  subroutine buffered()
    character, allocatable :: space(:)
    integer, pointer :: from(:), to(:)
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    allocate (space(4 * n + MPI_BSEND_OVERHEAD + 1024))
    call MPI_Buffer_attach(space, size(space), ierror)
    call MPI_Bsend(from, n, MPI_INTEGER, next, 8, MPI_COMM_WORLD, ierror)
    call MPI_Recv(to, n, MPI_INTEGER, previous, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call received(to, "MPI_Bsend")
    call detach()
    call discard(from)
  end subroutine

  ! Only mpi_f08 gives the address of the buffer back as a C pointer.
  subroutine detach()
    use, intrinsic :: iso_c_binding, only: c_ptr
    integer :: bytes
#if defined(INTERFACE_F08)
    type(c_ptr) :: space
#else
    integer(MPI_ADDRESS_KIND) :: space
#endif
    call MPI_Buffer_detach(space, bytes, ierror)
  end subroutine

  subroutine packed()
    integer, pointer :: from(:), to(:), pack(:)
    integer :: position
    from => integers(ramp + 1000 * previous)
    to => integers(0 * ramp)
    pack => integers([(0, i = 1, n + 100)])
    position = 0
    call MPI_Pack(from, n, MPI_INTEGER, pack, 4 * (n + 100), position, MPI_COMM_WORLD, ierror)
    position = 0
    call MPI_Unpack(pack, 4 * (n + 100), position, to, n, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call received(to, "MPI_Pack, MPI_Unpack")
    call discard(from)
    call discard(pack)
  end subroutine
#if MPI_STANDARD >= 4
  subroutine partitioned()
    integer, parameter :: partitions = 4
    integer(MPI_COUNT_KIND), parameter :: each = n / partitions
    REQUEST_T :: requests(2)
    integer, pointer :: from(:), to(:)
    integer :: round, part
    from => integers(ramp + 1000 * rank)
    to => integers(0 * ramp)
    call MPI_Precv_init(to, partitions, each, MPI_INTEGER, previous, 9, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1), ierror)
    call MPI_Psend_init(from, partitions, each, MPI_INTEGER, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), ierror)
    do round = 1, 2
      call MPI_Startall(2, requests, ierror)
      do part = partitions - 1, 0, -1
        call MPI_Pready(part, requests(2), ierror)
      end do
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    end do
    call MPI_Request_free(requests(1), ierror)
    call MPI_Request_free(requests(2), ierror)
    call received(to, "MPI_Psend_init, MPI_Precv_init")
    call discard(from)
  end subroutine
#endif
end module
