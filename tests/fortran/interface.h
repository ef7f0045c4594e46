! SPDX-License-Identifier: Apache-2.0
! Copyright 2026 The Accord authors
!
! The three Fortran interfaces of MPI differ in where their names come from and in the types of
! handles. USE_MPI and DECLARE_MPI stand at the two places of a procedure where one of them may be.
! Open MPI 4 has persistent collectives by names of its own, in modules of its own: USE_PERSISTENT.
#if defined(EXTENSIONS)
#define MPI_Allreduce_init MPIX_Allreduce_init
#if defined(INTERFACE_F08)
#define USE_PERSISTENT use mpi_f08_ext
#define DECLARE_PERSISTENT
#elif defined(INTERFACE_MPI)
#define USE_PERSISTENT use mpi_ext
#define DECLARE_PERSISTENT
#else
#define USE_PERSISTENT
#define DECLARE_PERSISTENT include 'mpif-ext.h'
#endif
#else
#define USE_PERSISTENT
#define DECLARE_PERSISTENT
#endif
#if defined(INTERFACE_F08)
#define USE_MPI use mpi_f08
#define DECLARE_MPI
#define COMM_T type(MPI_Comm)
#define TYPE_T type(MPI_Datatype)
#define REQUEST_T type(MPI_Request)
#define MESSAGE_T type(MPI_Message)
#define OP_T type(MPI_Op)
#define HANDLER_T type(MPI_Errhandler)
#define FILE_T type(MPI_File)
#define WIN_T type(MPI_Win)
#define STATUS_T type(MPI_Status)
#else
#define COMM_T integer
#define TYPE_T integer
#define REQUEST_T integer
#define MESSAGE_T integer
#define OP_T integer
#define HANDLER_T integer
#define FILE_T integer
#define WIN_T integer
#define STATUS_T integer, dimension(MPI_STATUS_SIZE)
#if defined(INTERFACE_MPI)
#define USE_MPI use mpi
#define DECLARE_MPI
#else
#define USE_MPI
#define DECLARE_MPI include 'mpif.h'
#endif
#endif
