// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What goes before messages of workers of other nodes. The input is a message and what somebody
// makes of the seal of another one; of them all this worker hears only what its job has sent to it,
// each once.
#include <set>
#include <vector>

#include "fuzz.h"
#include "net/seal.h"

namespace {

using namespace accord;
using net::Seal;
using net::Sealer;
using Bytes = Sealer::Bytes;

Bytes bytes_of(const Seal& seal) { return std::as_bytes(std::span(&seal, 1)); }
Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Sealer worker(std::string_view address, std::uint64_t key) {
  Sealer made({key, ~key});
  made.set_own(bytes_of(address));
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  fuzz::Input input(data, size_bytes);
  Sealer receiver = worker("receiver", 1);
  const Sealer ours = worker("sender", 1);
  const Sealer another_jobs = worker("sender", 2);
  const std::uint64_t to = receiver.id_of(bytes_of("receiver"));
  std::set<std::uint64_t> heard;
  while (!input.empty()) {
    const auto how = input.value<std::uint8_t>();
    const auto number = std::uint64_t{input.value<std::uint16_t>()};
    const unsigned kind = input.value<std::uint8_t>() % 16;
    const Bytes message = input.take(input.value<std::uint8_t>());
    const Sealer& by = (how & 1) != 0 ? another_jobs : ours;
    Seal seal = by.seal((how & 2) != 0 ? to + 1 : to, number, kind, message);
    std::vector<std::byte> header(bytes_of(seal).begin(), bytes_of(seal).end());
    bool is_changed = false;
    if ((how & 4) != 0) {
      const Bytes change = input.take(header.size());
      for (std::size_t i = 0; i < change.size(); ++i) header[i] ^= change[i];
      is_changed = std::ranges::any_of(change, [](std::byte each) { return each != std::byte{}; });
    }
    if ((how & 8) != 0) header.resize(input.value<std::uint8_t>() % 64);
    if ((how & 16) != 0) header = {message.begin(), message.end()};
    const bool is_whole = header.size() == sizeof seal && (how & 16) == 0;
    const bool is_right = (how & 3) == 0 && is_whole && !is_changed;
    std::uint64_t from = 0;
    const bool opened = receiver.open(header, kind, message, from);
    if (opened) {
      FUZZ_CHECK(is_right && from == receiver.id_of(bytes_of("sender")));
      FUZZ_CHECK(number != 0 && heard.insert(number).second);
    } else if (is_right && (heard.empty() || number > *heard.rbegin())) {
      FUZZ_CHECK(number == 0);
    }
  }
  return 0;
}
