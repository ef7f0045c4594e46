! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! Arrays in device memory, and what the tests share. The host runtime ends a program that touches
! such memory, as an MPI does that gets its address: a call that passes Accord by is a crash.
module device
  use accord
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  implicit none
  private
  public :: integers, doubles, contents, discard, expect, expect_path, failures

  integer, protected :: failures = 0

  interface contents
    module procedure integer_contents, double_contents
  end interface
  interface discard
    module procedure discard_integers, discard_doubles
  end interface

contains

  ! A new array with these values. What it points to is not contiguous by declaration, as in most programs.
  function integers(values) result(array)
    integer, intent(in), target, contiguous :: values(:)
    integer, pointer :: array(:)
    call c_f_pointer(moved(c_loc(values), storage_size(values) / 8 * size(values)), array, [size(values)])
  end function

  function doubles(values) result(array)
    real(real64), intent(in), target, contiguous :: values(:)
    real(real64), pointer :: array(:)
    call c_f_pointer(moved(c_loc(values), storage_size(values) / 8 * size(values)), array, [size(values)])
  end function

  function integer_contents(array) result(values)
    integer, intent(in), pointer :: array(:)
    integer, allocatable, target :: values(:)
    allocate (values(size(array)))
    call check(accord_memcpy(c_loc(values), c_loc(array(1)), int(4 * size(array), c_size_t)))
  end function

  function double_contents(array) result(values)
    real(real64), intent(in), pointer :: array(:)
    real(real64), allocatable, target :: values(:)
    allocate (values(size(array)))
    call check(accord_memcpy(c_loc(values), c_loc(array(1)), int(8 * size(array), c_size_t)))
  end function

  subroutine discard_integers(array)
    integer, pointer :: array(:)
    call check(accord_free(c_loc(array(1))))
  end subroutine

  subroutine discard_doubles(array)
    real(real64), pointer :: array(:)
    call check(accord_free(c_loc(array(1))))
  end subroutine

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    write (error_unit, '(2a)') "wrong: ", what
    failures = failures + 1
  end subroutine

  ! The last call on device memory went by Accord, in this way where one is named.
  subroutine expect_path(what, path)
    character(*), intent(in) :: what
    character(*), intent(in), optional :: path
    call expect(accord_last_path() /= "-", what // " passed Accord by")
    if (present(path)) call expect(accord_last_path() == path, what // " went by " // accord_last_path())
  end subroutine

  type(c_ptr) function moved(values, bytes)
    type(c_ptr), intent(in) :: values
    integer, intent(in) :: bytes
    call check(accord_malloc(moved, int(bytes, c_size_t), ACCORD_MEMORY_DEVICE))
    call check(accord_memcpy(moved, values, int(bytes, c_size_t)))
  end function

  subroutine check(code)
    integer(c_int), intent(in) :: code
    if (code == ACCORD_OK) return
    write (error_unit, '(a)') accord_last_error()
    error stop 2
  end subroutine
end module
