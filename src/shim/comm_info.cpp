// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/comm_info.h"

#include <optional>
#include <string>

#include "base/log.h"
#include "shim/shim.h"

namespace accord::shim {
namespace {

constexpr const char* kAlgorithmKey = "accord_algorithm";

// An attribute, so that the host MPI hands it on where a communicator is duplicated.
using Choice = std::shared_ptr<const coll::AlgorithmChoice>;
int choice_keyval = MPI_KEYVAL_INVALID;

int copy_choice(MPI_Comm, int, void*, void* given, void* copy, int* copied) {
  *static_cast<void**>(copy) = new Choice(*static_cast<Choice*>(given));
  *copied = 1;
  return MPI_SUCCESS;
}
int delete_choice(MPI_Comm, int, void* value, void*) {
  delete static_cast<Choice*>(value);
  return MPI_SUCCESS;
}

std::optional<std::string> value_in(MPI_Info info) {
  if (info == MPI_INFO_NULL) return std::nullopt;
  std::string value(MPI_MAX_INFO_VAL + 1, '\0');
  int found = 0;
  if (host::Info_get(info, kAlgorithmKey, MPI_MAX_INFO_VAL, value.data(), &found) != MPI_SUCCESS ||
      found == 0)
    return std::nullopt;
  return value.substr(0, value.find('\0'));
}

// Whether all ranks of `comm` have the same number. Collective.
bool same_on_all(MPI_Comm comm, std::uint64_t number) {
  const auto word = static_cast<std::int64_t>(number >> 1);
  std::int64_t words[] = {word, ~word};
  const Region region(engine());
  return host::Allreduce(MPI_IN_PLACE, words, 2, MPI_INT64_T, MPI_MIN, comm) == MPI_SUCCESS &&
         words[0] == ~words[1];
}

void keep(MPI_Comm comm, CommState& state, Choice choice) {
  if (choice) {
    auto kept = std::make_unique<Choice>(choice);
    if (host::Comm_set_attr(comm, choice_keyval, kept.get()) == MPI_SUCCESS) (void)kept.release();
  } else if (state.algorithms) {
    (void)host::Comm_delete_attr(comm, choice_keyval);
  }
  state.algorithms = std::move(choice);
  // What was voted on so far was for the ways there were, and so were the calls that are kept.
  state.queue->modes.clear();
  state.last = {};
  state.repeated = {};
}

// Takes from `info` what it says of algorithms. Collective: ranks that went different ways would
// wait for each other for ever, so none counts unless all say the same, nor what counted before.
void take_info(MPI_Comm comm, MPI_Info info, bool replaces) {
  if (!job.has_devices) return;
  CommState* const state = comm_state(comm);
  if (state == nullptr || state->inter || state->mixed_worlds) return;
  const std::optional<std::string> value = value_in(info);
  std::string problem;
  const auto parsed = coll::AlgorithmChoice::parse(value.value_or("auto"), problem);
  if (!same_on_all(comm, value ? parsed.hash() : 0)) {
    if (state->rank == 0)
      log::warn("the ranks of a communicator give different values of {}; none counts",
                kAlgorithmKey);
    if (state->algorithms) keep(comm, *state, nullptr);
    return;
  }
  if (state->rank == 0 && !problem.empty()) log::warn("{}: {}", kAlgorithmKey, problem);
  if (!value && !(replaces && state->algorithms)) return;
  keep(comm, *state, value ? std::make_shared<coll::AlgorithmChoice>(parsed) : nullptr);
}

}  // namespace

int Comm_set_info(MPI_Comm comm, MPI_Info info) {
  if (const int code = wait_for_turn(comm); code != MPI_SUCCESS) return code;
  {
    const Region region(engine());
    const int code = host::Comm_set_info(comm, info);
    if (code != MPI_SUCCESS) return code;
  }
  take_info(comm, info, false);
  return MPI_SUCCESS;
}

int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  if (const int code = wait_for_turn(comm); code != MPI_SUCCESS) return code;
  {
    const Region region(engine());
    const int code = host::Comm_dup_with_info(comm, info, newcomm);
    if (code != MPI_SUCCESS) return code;
  }
  take_info(*newcomm, info, true);
  return MPI_SUCCESS;
}

std::shared_ptr<const coll::AlgorithmChoice> inherited_algorithms(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  if (choice_keyval == MPI_KEYVAL_INVALID ||
      host::Comm_get_attr(comm, choice_keyval, &value, &found) != MPI_SUCCESS || found == 0)
    return nullptr;
  return *static_cast<Choice*>(value);
}

void make_info_keyval() {
  if (choice_keyval == MPI_KEYVAL_INVALID)
    (void)host::Comm_create_keyval(copy_choice, delete_choice, &choice_keyval, nullptr);
}
void free_info_keyval() {
  if (choice_keyval != MPI_KEYVAL_INVALID) (void)host::Comm_free_keyval(&choice_keyval);
}

}  // namespace accord::shim
