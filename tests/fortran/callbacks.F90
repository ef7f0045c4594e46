! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Functions of a Fortran program that MPI calls, and errors that reach it.
#include "interface.h"
module callbacks
  USE_MPI
  use device
  implicit none
  private
  public :: check_callbacks
  DECLARE_MPI

  integer, parameter :: n = 300, modulus = 1009
  integer :: rank, ranks, ierror
  integer :: handled = MPI_SUCCESS
  integer :: i
  integer, parameter :: ramp(n) = [(i, i = 1, n)]

contains

  subroutine check_callbacks()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call operation()
    call errors()
    call window()
    call file()
#if !defined(INTERFACE_H)
    call sizes()
#endif
  end subroutine

  ! Products modulo a prime number, which are not zero. The CPU computes them, so on copies.
#if defined(INTERFACE_F08)
  subroutine multiply(from, into, count, kind)
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
    type(c_ptr), value :: from, into
    integer :: count
    type(MPI_Datatype) :: kind
    integer, pointer :: a(:), b(:)
    call c_f_pointer(from, a, [count])
    call c_f_pointer(into, b, [count])
    if (kind == MPI_INTEGER) b = mod(a * b, modulus)
  end subroutine
#else
  subroutine multiply(a, b, count, kind)
    integer :: count, kind
    integer :: a(count), b(count)
    if (kind == MPI_INTEGER) b = mod(a * b, modulus)
  end subroutine
#endif

  subroutine operation()
    OP_T :: product
    REQUEST_T :: request
    integer, pointer :: both(:), once(:)
    integer :: expected(n), r
    expected = 1
    do r = 1, ranks
      expected = mod(expected * (ramp + r), modulus)
    end do
    call MPI_Op_create(multiply, .true., product, ierror)
    both => integers(ramp + rank + 1)
    call MPI_Allreduce(MPI_IN_PLACE, both, n, MPI_INTEGER, product, MPI_COMM_WORLD, ierror)
    call expect(all(contents(both) == expected), "an operation of the program")
    call discard(both)
    both => integers(ramp + rank + 1)
    call MPI_Iallreduce(MPI_IN_PLACE, both, n, MPI_INTEGER, product, MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call expect(all(contents(both) == expected), "an operation of the program in MPI_Iallreduce")
    call discard(both)
    both => integers(ramp + 1)
    once => integers(ramp + 2)
    call MPI_Reduce_local(once, both, n, MPI_INTEGER, product, ierror)
    call expect(all(contents(both) == mod((ramp + 1) * (ramp + 2), modulus)), "MPI_Reduce_local")
    call MPI_Op_free(product, ierror)
    call discard(both)
    call discard(once)
  end subroutine

  subroutine handle(comm, code)
    COMM_T :: comm
    integer :: code
    handled = code
  end subroutine

  ! A rank that is no root, with a handler of the program, and with the code returned.
  subroutine errors()
    HANDLER_T :: handler
    COMM_T :: comm
    integer, pointer :: numbers(:)
    integer :: class, code
    numbers => integers(ramp)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_create_errhandler(handle, handler, ierror)
    call MPI_Comm_set_errhandler(comm, handler, ierror)
    call MPI_Bcast(numbers, n, MPI_INTEGER, ranks + 5, comm, ierror)
    call MPI_Error_class(handled, class, ierror)
    call expect(class == MPI_ERR_ROOT, "the code that an error handler of the program gets")
    call MPI_Errhandler_free(handler, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    call MPI_Bcast(numbers, n, MPI_INTEGER, ranks + 5, comm, code)
    call MPI_Error_class(code, class, ierror)
    call expect(class == MPI_ERR_ROOT, "the code that a call returns")
    call MPI_Comm_free(comm, ierror)
    call discard(numbers)
  end subroutine

  ! Of device memory, read by the next rank. Open MPI 4.1 makes no windows in these tests, and says so by an error.
  subroutine window()
    use, intrinsic :: iso_c_binding, only: c_loc
    COMM_T :: comm
    WIN_T :: win
    integer(MPI_ADDRESS_KIND) :: told
    logical :: found
    integer, pointer :: numbers(:), read(:)
    numbers => integers(ramp + 1000 * rank)
    read => integers(0 * ramp)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierror)
    call MPI_Win_create(numbers, int(4 * n, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, comm, win, ierror)
    if (ierror == MPI_SUCCESS) then
      call MPI_Win_get_attr(win, MPI_WIN_BASE, told, found, ierror)
      call expect(found .and. told == transfer(c_loc(numbers), told), "MPI_WIN_BASE")
      call MPI_Win_get_attr(win, MPI_WIN_SIZE, told, found, ierror)
      call expect(found .and. told == 4 * n, "MPI_WIN_SIZE")
      call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, told, found, ierror)
      call expect(found .and. told == 4, "MPI_WIN_DISP_UNIT")
      call MPI_Win_fence(0, win, ierror)
      call MPI_Get(read, n, MPI_INTEGER, mod(rank + 1, ranks), 0_MPI_ADDRESS_KIND, n, MPI_INTEGER, win, ierror)
      call MPI_Win_fence(0, win, ierror)
      call expect(all(contents(read) == ramp + 1000 * mod(rank + 1, ranks)), "MPI_Get")
      call MPI_Win_free(win, ierror)
      call expect(ierror == MPI_SUCCESS, "MPI_Win_free")
    end if
    call MPI_Comm_free(comm, ierror)
    call discard(read)
    call discard(numbers)
  end subroutine

  subroutine file()
    FILE_T :: handle
    integer, pointer :: written(:), read(:)
    integer(MPI_OFFSET_KIND) :: place
    character(64) :: name
    write (name, '(a, i0)') "accord_fortran_file.", rank
    place = 64
    written => integers(ramp + 1000 * rank)
    read => integers(0 * ramp)
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &
                       handle, ierror)
    call MPI_File_write_at(handle, place, written, n, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
    call MPI_File_read_at(handle, place, read, n, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
    call MPI_File_close(handle, ierror)
    call expect(all(contents(read) == ramp + 1000 * rank), "MPI_File_write_at, MPI_File_read_at")
    call discard(written)
    call discard(read)
  end subroutine

#if !defined(INTERFACE_H)
  ! MPI_Sizeof asks for a type and touches nothing.
  subroutine sizes()
    integer, pointer :: numbers(:)
    integer :: bytes
    numbers => integers(ramp)
    call MPI_Sizeof(numbers, bytes, ierror)
    call expect(bytes == 4, "MPI_Sizeof")
    call discard(numbers)
  end subroutine
#endif
end module
