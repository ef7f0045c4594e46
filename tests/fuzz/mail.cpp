// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank of another node tells: notes of net/mail and of net/freight, while one message to it
// waits here and one from it is fetched. The first byte: by which design, and whether the first one
// is kept. Then notes: which of both kinds, a length and bytes.
#include "net/mail.h"

#include "fake_worker.h"

namespace {

using namespace accord;
using net::Mail;

constexpr std::size_t kBytes = 256;
constexpr std::uint32_t kPeer = 1;
constexpr int kSteps = 8;

net::Memory memory_of(std::vector<std::byte>& bytes) {
  return {.start = bytes.data(), .size_bytes = bytes.size(), .where = {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  fuzz::Input input(data, size_bytes);
  const auto how = input.value<std::uint8_t>();
  const net::Design* chosen = net::design_at(how & 7);
  const net::Design& design = chosen != nullptr ? *chosen : net::fallback_design();
  std::vector<std::byte> first(kBytes);
  std::vector<std::byte> second(kBytes);
  std::vector<std::byte> fetched(kBytes);
  auto made = std::make_unique<fuzz::FakeWorker>();
  fuzz::FakeWorker& worker = *made;
  const std::vector<std::byte> address(8);
  std::unique_ptr<net::Attendant> attendant;
  FUZZ_CHECK(net::Attendant::start(worker, attendant).ok());
  Mail mail(std::move(made), std::move(attendant), {address, address},
            {.rank = 0, .kept_bytes_max = 1 << 20});

  const auto number = mail.post(kPeer, design, memory_of(first));
  FUZZ_CHECK(number.has_value());
  if ((how & 8) != 0) (void)mail.keep(*number);
  const auto fetch = mail.begin_fetch(kPeer, *number, memory_of(fetched));
  while (!input.empty()) {
    const auto kind = input.value<std::uint8_t>() & 1U;
    {
      const auto locked = worker.lock();
      worker.deliver(kind, input.take(input.value<std::uint8_t>()));
    }
    (void)mail.progress();
  }
  for (int i = 0; i < kSteps; ++i) (void)mail.progress();
  bool done = false;
  (void)mail.poll(*fetch, done);
  if (mail.was_invited()) mail.accept_invitations();

  // Once it has ended nothing is taken to be on its way to that rank.
  Mail::Stage stage{};
  (void)mail.look(*number, stage);
  const bool has_ended = stage == Mail::Stage::ended && (how & 8) == 0;
  const auto next = mail.post(kPeer, design, memory_of(second));
  FUZZ_CHECK(next.has_value());
  (void)mail.look(*next, stage);
  if (has_ended) FUZZ_CHECK(stage != Mail::Stage::is_next);
  return 0;
}
