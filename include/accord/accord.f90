! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! The functions of accord.h for Fortran 2003, without those that give JSON to tools. The comments there
! say what each does. A compiler reads only modules that it has written itself, so compile this file
! with the program:
!
!   mpif90 -I... -c accord.f90 && mpif90 program.f90 accord.o -laccord
!
! A program needs none of it to use Accord: MPI calls on device memory just work.
module accord
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer(c_int), parameter, public :: ACCORD_OK = 0
  integer(c_int), parameter, public :: ACCORD_ERROR_INVALID = 1      ! a bad argument
  integer(c_int), parameter, public :: ACCORD_ERROR_NO_MEMORY = 2
  integer(c_int), parameter, public :: ACCORD_ERROR_DEVICE = 3       ! the driver reported an error
  integer(c_int), parameter, public :: ACCORD_ERROR_UNSUPPORTED = 4

  integer(c_int), parameter, public :: ACCORD_MEMORY_HOST = 0
  integer(c_int), parameter, public :: ACCORD_MEMORY_PINNED = 1      ! page-locked host memory
  integer(c_int), parameter, public :: ACCORD_MEMORY_MANAGED = 2     ! migrates between host and device
  integer(c_int), parameter, public :: ACCORD_MEMORY_DEVICE = 3      ! the CPU must not touch it

  public :: accord_malloc, accord_free, accord_memcpy, accord_memory_kind, accord_set_device, accord_device_count
  public :: accord_runtime_name, accord_last_error, accord_last_path

  interface
    ! Turn what this gives into an array by c_f_pointer. The array has an address and a shape; only
    ! MPI calls and kernels may touch its elements.
    integer(c_int) function accord_malloc(pointer, size_bytes, kind) bind(C)
      import :: c_int, c_size_t, c_ptr
      type(c_ptr), intent(out) :: pointer
      integer(c_size_t), value :: size_bytes
      integer(c_int), value :: kind
    end function

    integer(c_int) function accord_free(pointer) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: pointer
    end function

    ! c_loc(array) is the address of an array that has the target attribute.
    integer(c_int) function accord_memcpy(dst, src, size_bytes) bind(C)
      import :: c_int, c_size_t, c_ptr
      type(c_ptr), value :: dst, src
      integer(c_size_t), value :: size_bytes
    end function

    integer(c_int) function accord_memory_kind(pointer, kind) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: pointer
      integer(c_int), intent(out) :: kind
    end function

    integer(c_int) function accord_set_device(device) bind(C)
      import :: c_int
      integer(c_int), value :: device
    end function

    integer(c_int) function accord_device_count() bind(C)
      import :: c_int
    end function

    type(c_ptr) function c_runtime_name() bind(C, name="accord_runtime_name")
      import :: c_ptr
    end function

    type(c_ptr) function c_last_error() bind(C, name="accord_last_error")
      import :: c_ptr
    end function

    type(c_ptr) function c_last_path() bind(C, name="accord_last_path")
      import :: c_ptr
    end function

    integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

  function accord_runtime_name() result(name)
    character(:), allocatable :: name
    name = copied(c_runtime_name())
  end function

  function accord_last_error() result(text)
    character(:), allocatable :: text
    text = copied(c_last_error())
  end function

  function accord_last_path() result(path)
    character(:), allocatable :: path
    path = copied(c_last_path())
  end function

  ! The text at an address, which ends with a NUL.
  function copied(text) result(string)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: string
    character(kind=c_char), pointer :: letters(:)
    integer(c_size_t) :: i
    call c_f_pointer(text, letters, [c_strlen(text)])
    allocate (character(size(letters)) :: string)
    do i = 1, size(letters, kind=c_size_t)
      string(i:i) = letters(i)
    end do
  end function
end module
