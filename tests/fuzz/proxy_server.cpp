// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the proxy makes of a rank's packets, and of what other workers tell it meanwhile. The first
// byte: whether the rank greets well first, whether the proxy has a network, how many of the
// workers' messages come first.
#include "fake_worker.h"
#include "net/freight.h"
#include "packets.h"
#include "proxy/server.h"

namespace {

using namespace accord;

void greet(int socket) {
  fuzz::Frame hello{.kind = static_cast<std::uint32_t>(proxy::Kind::hello)};
  hello.words[0] = proxy::kVersion;
  (void)::send(socket, &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  (void)fuzz::exported();
  const std::size_t before = fuzz::open_descriptors();
  {
    fuzz::Input input(data, size_bytes);
    const auto how = input.value<std::uint8_t>();
    int ends[2];
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    const node::Descriptor ours(ends[0]);
    const bool has_network = (how & 2) == 0;
    auto worker = has_network ? std::make_unique<fuzz::FakeWorker>() : nullptr;
    fuzz::FakeWorker* const network = worker.get();
    constexpr std::size_t kPieceBytes = 4096;
    const Status why_not = has_network ? Status() : Status(StatusCode::unsupported, "no network");
    proxy::Server server(
        std::move(worker), why_not,
        {.pool_bytes_max = 1 << 20,
         .freight = {.piece_bytes = kPieceBytes, .pieces_of_one = 4, .bytes_max = 8 * kPieceBytes}},
        "here");
    server.take(node::Descriptor(ends[1]), 1);
    if ((how & 1) == 0) greet(ours.number());
    // Of the kind of src/net/freight.cpp.
    for (int i = how >> 4; network != nullptr && i > 0; --i)
      network->deliver(1, input.take(input.value<std::uint8_t>()));
    while (!input.empty()) fuzz::send_one(ours.number(), input);
    const auto leave = [&] { ::shutdown(ours.number(), SHUT_WR); };
    if (network != nullptr)
      network->when_idle = [&](int times) {
        leave();
        // What waits for a peer that never comes would take its time to end.
        if (times > 1) server.stop();
      };
    else
      leave();
    server.run([&] { server.stop(); });
  }
  FUZZ_CHECK(fuzz::open_descriptors() == before);
  return 0;
}
