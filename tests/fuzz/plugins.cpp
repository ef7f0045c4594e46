// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A plug-in for a collective library whose every answer is the input's: codes, texts that may not
// end, versions, communicators that are null.
#include "ccl/library.h"
#include "fuzz.h"

namespace {

using namespace accord;

fuzz::Input* answers = nullptr;

int answer(accord_ccl_error* error) {
  const auto text = answers->take(answers->value<std::uint16_t>() % (sizeof error->text + 1));
  if (!text.empty()) std::memcpy(error->text, text.data(), text.size());
  return answers->value<std::int8_t>();
}
int open(const char*, void** library, accord_ccl_error* error) {
  *library = answers->value<std::uint8_t>() != 0 ? &answers : nullptr;
  return answer(error);
}
void describe(void*, accord_ccl_description* description) {
  description->version = answers->value<int>();
  std::memset(description->path, answers->value<char>(), sizeof description->path);
  std::memset(description->found, answers->value<char>(), sizeof description->found);
}
int supports(void*, accord_ccl_call, accord_ccl_type, accord_ccl_op) {
  return answers->value<int>();
}
int make_id(void*, accord_ccl_id*, accord_ccl_error* error) { return answer(error); }
int join(void*, const accord_ccl_id*, int, int, void** made, accord_ccl_error* error) {
  *made = answers->value<std::uint8_t>() != 0 ? &answers : nullptr;
  return answer(error);
}
void leave(void* made) { FUZZ_CHECK(made != nullptr); }
int check(void* made, accord_ccl_error* error) {
  FUZZ_CHECK(made != nullptr);
  return answer(error);
}
int enqueue(void* made, const accord_ccl_work*, std::size_t, void*, accord_ccl_error* error) {
  FUZZ_CHECK(made != nullptr);
  return answer(error);
}
int can_be_recorded(void*) { return answers->value<int>(); }

constexpr accord_ccl_plugin kPlugin{.abi = ACCORD_CCL_ABI,
                                    .size_bytes = sizeof(accord_ccl_plugin),
                                    .name = "fuzzed",
                                    .runtime = "host",
                                    .open = open,
                                    .describe = describe,
                                    .supports = supports,
                                    .make_id = make_id,
                                    .join = join,
                                    .leave = leave,
                                    .abort = leave,
                                    .check = check,
                                    .enqueue = enqueue,
                                    .can_be_recorded = can_be_recorded};

// An error has a text that ends, and no longer one than there is room for.
void check_text(const Status& status) { FUZZ_CHECK(status.message().size() < 3000); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  fuzz::Input input(data, size_bytes);
  answers = &input;
  // On the heap, so that what is read beyond it is seen.
  const auto library = std::make_unique<ccl::Library>(
      ccl::Library::Source{.plugin = &kPlugin, .paths = {nullptr, "other"}, .version_min = 3});
  const Status opened = library->open();
  check_text(opened);
  FUZZ_CHECK(opened.code() == library->open().code());
  const accord_ccl_description& description = library->description();
  FUZZ_CHECK(::strnlen(description.path, sizeof description.path) < sizeof description.path);
  FUZZ_CHECK(::strnlen(description.found, sizeof description.found) < sizeof description.found);
  if (!opened.ok()) return 0;
  (void)library->supports(ACCORD_CCL_BCAST, ACCORD_CCL_UINT8, ACCORD_CCL_NONE);
  (void)library->can_be_recorded();
  const auto id = std::make_unique<ccl::Id>();
  check_text(library->make_id(*id));
  std::unique_ptr<ccl::Communicator> communicator;
  const Status joined = library->join(*id, 0, 2, communicator);
  check_text(joined);
  FUZZ_CHECK(joined.ok() == (communicator != nullptr));
  if (!joined.ok()) return 0;
  const ccl::Work work{};
  while (!input.empty() && communicator->usable().ok()) {
    check_text(communicator->check());
    const Status enqueued = communicator->enqueue({&work, 1}, nullptr);
    check_text(enqueued);
    if (!enqueued.ok() && communicator->give_up()) communicator->abort();
  }
  return 0;
}
