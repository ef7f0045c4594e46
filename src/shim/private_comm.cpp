// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/private_comm.h"

namespace accord::shim {

void PrivateComm::open_world() {
  world_ = true;
  if (comm_ == MPI_COMM_NULL && host::Comm_dup(MPI_COMM_SELF, &comm_) == MPI_SUCCESS)
    (void)host::Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

#ifdef ACCORD_HAS_Session_init

bool PrivateComm::close_world() {
  world_ = false;
  if (session_ == MPI_SESSION_NULL && comm_ != MPI_COMM_NULL) {
    // What was made of MPI_COMM_SELF goes with it; sessions that live on need another.
    (void)host::Comm_free(&comm_);
    if (sessions_ > 0) make_in_session();
  }
  return close_if_last();
}

void PrivateComm::open_session() {
  ++sessions_;
  if (comm_ == MPI_COMM_NULL) make_in_session();
}

bool PrivateComm::close_session() {
  --sessions_;
  return close_if_last();
}

// Without MPI_Init there is no MPI_COMM_SELF: a session's process set of this process stands in.
void PrivateComm::make_in_session() {
  if (host::Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session_) != MPI_SUCCESS) return;
  MPI_Group self = MPI_GROUP_NULL;
  if (host::Group_from_session_pset(session_, "mpi://SELF", &self) != MPI_SUCCESS) return;
  (void)host::Comm_create_from_group(self, "accord", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm_);
  (void)host::Group_free(&self);
}

bool PrivateComm::close_if_last() {
  if (world_ || sessions_ > 0) return false;
  if (comm_ != MPI_COMM_NULL) (void)host::Comm_free(&comm_);
  if (session_ != MPI_SESSION_NULL) (void)host::Session_finalize(&session_);
  return true;
}

#else

bool PrivateComm::close_world() {
  world_ = false;
  return close_if_last();
}

bool PrivateComm::close_if_last() {
  if (comm_ != MPI_COMM_NULL) (void)host::Comm_free(&comm_);
  return true;
}

#endif

}  // namespace accord::shim
