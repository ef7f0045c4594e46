/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A library that looks like an MPI to libaccord, built twice: FAKE_OPENMPI makes it one of the Open
 * MPI ABI. A trampoline knows no prototypes, so MPI_Sendrecv has one here that fills every kind of
 * argument register.
 */
#include <stdarg.h>

#ifdef FAKE_OPENMPI
int ompi_mpi_comm_world;
#endif

int PMPI_Init(void) { return 0; }

/* Its own number, to tell which of two fakes was called. */
int PMPI_Barrier(void) { return FAKE_NUMBER; }

double PMPI_Sendrecv(int a, double b, long c, double d, int e, double f, long g, double h, int i,
                     double j, long k, double l, int m, double n, long o, double p, int q,
                     double r) {
  const double sum = a + 2 * b + 3.0 * c + 4 * d + 5.0 * e + 6 * f + 7.0 * g + 8 * h + 9.0 * i;
  return sum + 10 * j + 11.0 * k + 12 * l + 13.0 * m + 14 * n + 15.0 * o + 16 * p + 17.0 * q +
         18 * r;
}

/* A variadic one: the number of vector registers is itself in a register. */
double PMPI_Bcast(int count, ...) {
  va_list arguments;
  va_start(arguments, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = sum * 3 + va_arg(arguments, double);
  va_end(arguments);
  return sum;
}

int MPI_Init(void) __attribute__((weak, alias("PMPI_Init")));
int MPI_Barrier(void) __attribute__((weak, alias("PMPI_Barrier")));
double MPI_Sendrecv(int, double, long, double, int, double, long, double, int, double, long, double,
                    int, double, long, double, int, double)
    __attribute__((weak, alias("PMPI_Sendrecv")));
double MPI_Bcast(int, ...) __attribute__((weak, alias("PMPI_Bcast")));
