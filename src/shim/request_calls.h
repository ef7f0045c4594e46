// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Completion, start and release of requests. The host MPI completes them all, ours included, since
// each is a real request; what remains here is to finish ours afterwards (copy received bytes to
// the device, raise an operation's error) and never to block inside the host MPI while an operation
// of ours needs progress.
#pragma once

#include <mpi.h>

namespace accord::shim {

int Wait(MPI_Request* request, MPI_Status* status);
int Test(MPI_Request* request, int* flag, MPI_Status* status);
int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status);
int Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status);
int Waitsome(int count, MPI_Request requests[], int* outcount, int indices[],
             MPI_Status statuses[]);
int Testsome(int count, MPI_Request requests[], int* outcount, int indices[],
             MPI_Status statuses[]);

int Start(MPI_Request* request);
int Startall(int count, MPI_Request requests[]);
int Request_free(MPI_Request* request);
int Cancel(MPI_Request* request);
// May call functions of the program: see host::completions.
int Grequest_complete(MPI_Request request);

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status);
int Request_get_status_all(int count, const MPI_Request requests[], int* flag,
                           MPI_Status statuses[]);
int Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status);
int Request_get_status_some(int count, const MPI_Request requests[], int* outcount, int indices[],
                            MPI_Status statuses[]);

}  // namespace accord::shim
