// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "callbacks.h"

#include <accord/accord.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "job.h"
#include "named_reach.h"

namespace accord::programs {
namespace {

using model::Op;
using model::reached;

constexpr int kNoTag = 32001;  // of no message
constexpr int kOwnElements = 5;

MPI_Op operations[4][2];
int comm_key = MPI_KEYVAL_INVALID;
int type_key = MPI_KEYVAL_INVALID;
MPI_Comm for_errors = MPI_COMM_NULL;
MPI_Errhandler error_handler = MPI_ERRHANDLER_NULL;
std::atomic<int> comm_attributes{0};
std::atomic<int> type_attributes{0};
std::atomic<int> tags{0};
thread_local int class_seen = MPI_SUCCESS;

void require(bool good, const char* what) {
  if (!good) fail(Symptom::data, std::string("in a function that MPI calls: ") + what);
}

// Of several threads at a time, on a communicator that they share.
int own_tag() { return 1 + tags.fetch_add(1) % 30'000; }

// Calls that change nothing. `may_probe`: a look for a message, too.
void look_around(bool may_probe) {
  int number = -1;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &number), "MPI_Comm_rank");
  require(number == job.rank, "MPI_Comm_rank");
  check(MPI_Type_size(MPI_INT64_T, &number), "MPI_Type_size");
  require(number == 8, "MPI_Type_size");
  MPI_Status status{};
  check(MPI_Status_set_elements(&status, MPI_INT64_T, 3), "MPI_Status_set_elements");
  check(MPI_Get_count(&status, MPI_INT64_T, &number), "MPI_Get_count");
  require(number == 3, "MPI_Get_count");
  if (!may_probe) return;
  int found = 0;
  check(MPI_Iprobe(0, kNoTag, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
  require(found == 0, "MPI_Iprobe");
}

// From device memory to device memory of this process.
void message_to_self() {
  constexpr std::size_t kNumbers = 40;
  const int tag = own_tag();
  std::vector<int> numbers(kNumbers, tag);
  std::vector<int> found(kNumbers, -1);
  if (!job.on_devices) {
    check(MPI_Sendrecv(numbers.data(), kNumbers, MPI_INT, 0, tag, found.data(), kNumbers, MPI_INT,
                       0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
    return require(found == numbers, "MPI_Sendrecv");
  }
  void* memory = nullptr;
  constexpr std::size_t kBytes = kNumbers * sizeof(int);
  require(accord_malloc(&memory, 2 * kBytes, ACCORD_MEMORY_DEVICE) == ACCORD_OK, "accord_malloc");
  void* const second = static_cast<char*>(memory) + kBytes;
  (void)accord_memcpy(memory, numbers.data(), kBytes);
  (void)accord_memcpy(second, found.data(), kBytes);
  check(MPI_Sendrecv(memory, kNumbers, MPI_INT, 0, tag, second, kNumbers, MPI_INT, 0, tag,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
  (void)accord_memcpy(found.data(), second, kBytes);
  require(found == numbers, "MPI_Sendrecv on device memory");
  (void)accord_free(memory);
}

void messages_of_deletion() {
  const bool may_communicate = works("messages in delete functions");
  look_around(may_communicate);
  if (may_communicate) message_to_self();
}

// Elements are blocks of 64-bit numbers, each at the begin of its extent.
template <Op kOp>
void operate(void* in_void, void* inout_void, int* length, MPI_Datatype* type) {
  reached("callback", std::string("operation ") + model::name_of(kOp));
  look_around(false);
  MPI_Aint first = -1;
  MPI_Aint extent = 0;
  int size_bytes = 0;
  check(MPI_Type_get_extent(*type, &first, &extent), "MPI_Type_get_extent");
  check(MPI_Type_size(*type, &size_bytes), "MPI_Type_size");
  require(first == 0 && extent >= size_bytes, "the datatype of an operation");
  const auto* in = static_cast<const std::byte*>(in_void);
  auto* inout = static_cast<std::byte*>(inout_void);
  for (int i = 0; i < *length; ++i, in += extent, inout += extent) {
    const auto* const lower = reinterpret_cast<const std::int64_t*>(in);
    auto* const higher = reinterpret_cast<std::int64_t*>(inout);
    for (std::size_t k = 0; k < static_cast<std::size_t>(size_bytes) / sizeof *lower; ++k)
      higher[k] = model::combine(kOp, lower[k], higher[k]);
  }
}

int copy_of_comm(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
  reached("callback", "copy of a communicator");
  look_around(true);
  message_to_self();
  comm_attributes.fetch_add(1);
  *static_cast<void**>(copy) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int deletion_of_comm(MPI_Comm, int, void*, void*) {
  reached("callback", "deletion of a communicator");
  messages_of_deletion();
  comm_attributes.fetch_sub(1);
  return MPI_SUCCESS;
}

int copy_of_type(MPI_Datatype, int, void*, void* value, void* copy, int* flag) {
  reached("callback", "copy of a datatype");
  look_around(true);
  type_attributes.fetch_add(1);
  *static_cast<void**>(copy) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int deletion_of_type(MPI_Datatype, int, void*, void*) {
  reached("callback", "deletion of a datatype");
  messages_of_deletion();
  type_attributes.fetch_sub(1);
  return MPI_SUCCESS;
}

void on_error(MPI_Comm* comm, int* code, ...) {
  check(MPI_Error_class(*code, &class_seen), "MPI_Error_class");
  reached("callback", "error handler");
  look_around(true);
  message_to_self();
  int size = 0;
  check(MPI_Comm_size(*comm, &size), "MPI_Comm_size");
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  check(MPI_Error_string(*code, text, &length), "MPI_Error_string");
  require(size == 1 && length > 0, "the error handler's arguments");
}

// MPICH holds a lock there, and with several threads ends in a deadlock now and then, without
// Accord, too.
bool may_probe_in_requests() {
  return !job.has_threads || job.flavour.vendor == conformance::Flavour::Vendor::open_mpi;
}

int query_own(void*, MPI_Status* status) {
  reached("callback", "query of a generalised request");
  look_around(may_probe_in_requests());
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  check(MPI_Status_set_cancelled(status, 0), "MPI_Status_set_cancelled");
  return MPI_Status_set_elements(status, MPI_INT64_T, kOwnElements);
}

int free_own(void*) {
  reached("callback", "free of a generalised request");
  look_around(may_probe_in_requests());
  return MPI_SUCCESS;
}

int cancel_own(void*, int) { return MPI_SUCCESS; }

void set_up_operations() {
  MPI_User_function* const functions[] = {nullptr, operate<Op::sum>, operate<Op::min>,
                                          operate<Op::compose>};
  for (int op = 1; op < 4; ++op) {
    for (int commutes = 0; commutes < 2; ++commutes)
      check(MPI_Op_create(functions[op], commutes, &operations[op][commutes]), "MPI_Op_create");
  }
}

}  // namespace

void set_up_callbacks() {
  set_up_operations();
  check(MPI_Comm_create_keyval(copy_of_comm, deletion_of_comm, &comm_key, nullptr),
        "MPI_Comm_create_keyval");
  check(MPI_Type_create_keyval(copy_of_type, deletion_of_type, &type_key, nullptr),
        "MPI_Type_create_keyval");
  check(MPI_Comm_create_errhandler(on_error, &error_handler), "MPI_Comm_create_errhandler");
  check(MPI_Comm_dup(MPI_COMM_SELF, &for_errors), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(for_errors, error_handler), "MPI_Comm_set_errhandler");
  for (const char* name :
       {"operation sum", "operation min", "operation compose", "copy of a communicator",
        "deletion of a communicator", "copy of a datatype", "deletion of a datatype",
        "error handler", "query of a generalised request", "free of a generalised request"})
    model::expect_reached("callback", name);
}

void check_attributes() {
  const int wanted = has_attribute(MPI_COMM_WORLD) ? 1 : 0;
  const auto is_right = [wanted] { return comm_attributes.load() == wanted; };
  // Those of a communicator may last as long as a request that the program has freed.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_right() && std::chrono::steady_clock::now() < deadline) look_around(true);
  if (!is_right())
    fail(Symptom::data, std::to_string(comm_attributes.load() - wanted) +
                            " attributes of communicators were not deleted");
  // Open MPI keeps some datatypes for good.
  if (type_attributes.load() < 0)
    fail(Symptom::data, "an attribute of a datatype was deleted more than once");
}

void end_callbacks() {
  if (has_attribute(MPI_COMM_WORLD))
    check(MPI_Comm_delete_attr(MPI_COMM_WORLD, comm_key), "MPI_Comm_delete_attr");
  check(MPI_Comm_free(&for_errors), "MPI_Comm_free");
  check(MPI_Errhandler_free(&error_handler), "MPI_Errhandler_free");
  for (int op = 1; op < 4; ++op)
    for (MPI_Op& operation : operations[op]) check(MPI_Op_free(&operation), "MPI_Op_free");
  check(MPI_Comm_free_keyval(&comm_key), "MPI_Comm_free_keyval");
  check(MPI_Type_free_keyval(&type_key), "MPI_Type_free_keyval");
}

MPI_Op user_operation(Op op, bool commutes) {
  return operations[static_cast<std::size_t>(op)][commutes ? 1 : 0];
}

MPI_Op make_user_operation(Op op, bool commutes) {
  MPI_Op made = MPI_OP_NULL;
  MPI_User_function* const function = op == Op::sum   ? operate<Op::sum>
                                      : op == Op::min ? operate<Op::min>
                                                      : operate<Op::compose>;
  check(MPI_Op_create(function, commutes ? 1 : 0, &made), "MPI_Op_create");
  return made;
}

void set_attribute_of_comm(MPI_Comm comm) {
  check(MPI_Comm_set_attr(comm, comm_key, &comm_attributes), "MPI_Comm_set_attr");
  comm_attributes.fetch_add(1);
}

void set_attribute_of_type(MPI_Datatype type) {
  check(MPI_Type_set_attr(type, type_key, &type_attributes), "MPI_Type_set_attr");
  type_attributes.fetch_add(1);
}

bool has_attribute(MPI_Comm comm) {
  void* value = nullptr;
  int flag = 0;
  check(MPI_Comm_get_attr(comm, comm_key, &value, &flag), "MPI_Comm_get_attr");
  require(flag == 0 || value == &comm_attributes, "the value of an attribute");
  return flag != 0;
}

void provoke_error() {
  static std::atomic<int> calls{0};
  int sent[2] = {1, 2};
  int received[2] = {-1, -1};
  const int tag = own_tag();
  int wanted = MPI_ERR_COUNT;
  class_seen = MPI_SUCCESS;
  switch (calls.fetch_add(1) % 3) {
    case 0:
      (void)MPI_Send(sent, -1, MPI_INT, 0, tag, for_errors);
      break;
    case 1:
      wanted = MPI_ERR_TAG;
      (void)MPI_Recv(received, 1, MPI_INT, 0, -100, for_errors, MPI_STATUS_IGNORE);
      break;
    default: {
#ifndef OPEN_MPI  // which does not tell of this
      wanted = MPI_ERR_TRUNCATE;
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Irecv(received, 1, MPI_INT, 0, tag, for_errors, &request), "MPI_Irecv");
      (void)MPI_Send(sent, 2, MPI_INT, 0, tag, for_errors);
      (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
#else
      (void)MPI_Bcast(sent, -1, MPI_INT, 0, for_errors);
#endif
    }
  }
  if (class_seen != wanted)
    fail(Symptom::error, "the error handler was told of class " + std::to_string(class_seen) +
                             ", not " + std::to_string(wanted));
  require(received[1] == -1, "what lies behind the buffer");
}

MPI_Request start_own(bool by_itself) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Grequest_start(query_own, free_own, cancel_own, nullptr, &request),
        "MPI_Grequest_start");
  if (by_itself) {
    std::thread([request] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      complete_own(request);
    }).detach();
  }
  return request;
}

void complete_own(MPI_Request request) {
  check(MPI_Grequest_complete(request), "MPI_Grequest_complete");
}

void check_own(const MPI_Status& status) {
  int elements = -1;
  check(MPI_Get_elements(&status, MPI_INT64_T, &elements), "MPI_Get_elements");
  if (elements != kOwnElements)
    fail(Symptom::data, "the status of a generalised request of the program tells " +
                            std::to_string(elements) + " elements");
}

}  // namespace accord::programs
