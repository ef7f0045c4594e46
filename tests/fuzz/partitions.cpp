// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What other processes tell of partitioned requests through the host MPI, while one that sends and
// one that receives are under way. The first byte: whether the receiver knows its sender, an honest
// one, already. Then messages: some fields of a header, what follows it. Nothing is touched beyond
// the two buffers, and what came of the honest sender alone is in its place.
#include <deque>
#include <vector>

#include "../unit/idle_port.h"
#include "fuzz.h"
#include "partitioned/receive.h"
#include "partitioned/send.h"

namespace {

using namespace accord;
using namespace accord::partitioned;

constexpr int kPeer = 1;
constexpr std::int32_t kPartitions = 4;
constexpr std::size_t kPartitionBytes = 16;
constexpr std::size_t kBytes = kPartitions * kPartitionBytes;
constexpr std::uint64_t kLineage = 5;
constexpr std::int32_t kTag = 3;

class InputPort final : public MessagePort {
 public:
  struct Message {
    int process;
    std::vector<std::byte> bytes;
  };
  Status send(int process, std::span<const std::byte> bytes, core::HostRequest& request) override {
    FUZZ_CHECK(process >= 0 && bytes.size() >= sizeof(wire::Header));
    request = 1;
    return {};
  }
  Status probe(bool& found, int& process, std::size_t& size_bytes,
               std::uint64_t& message) override {
    found = !coming.empty();
    if (!found) return {};
    now_ = std::move(coming.front());
    coming.pop_front();
    process = now_.process;
    size_bytes = now_.bytes.size();
    message = 1;
    return {};
  }
  Status receive(std::uint64_t, std::span<std::byte> bytes, core::HostRequest& request) override {
    FUZZ_CHECK(bytes.size() == now_.bytes.size());
    std::ranges::copy(now_.bytes, bytes.begin());
    request = 1;
    return {};
  }
  std::deque<Message> coming;

 private:
  Message now_;
};

// Whatever it is asked about is complete.
class DonePort final : public test::IdlePort {
 public:
  Status test(core::HostRequest&, bool& done) override {
    done = true;
    return {};
  }
};

PartitionedCall call_with(std::vector<std::byte>& memory) {
  PartitionedCall call;
  call.end.user = memory.data();
  call.end.segment = {core::Typemap::contiguous(1), memory.size(), 0};
  call.envelope = {.process = kPeer, .lineage = kLineage, .tag = kTag};
  call.partitions = kPartitions;
  call.partition_bytes = kPartitionBytes;
  return call;
}

void put(std::vector<std::byte>& message, std::span<const std::byte> bytes) {
  message.insert(message.end(), bytes.begin(), bytes.end());
}
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

wire::Hello honest_hello() {
  wire::Hello hello;
  hello.lineage = kLineage;
  hello.tag = kTag;
  hello.sender = 9;
  hello.transfers = kPartitions;
  hello.transfer_bytes = kPartitionBytes;
  hello.total_bytes = kBytes;
  return hello;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  fuzz::Input input(data, size_bytes);
  const bool is_met = (input.value<std::uint8_t>() & 1) != 0;
  std::vector<std::byte> from(kBytes);
  std::vector<std::byte> to(kBytes);
  InputPort messages;
  DonePort host;
  PartitionedTable table(messages, host, 0);
  const auto send = std::make_shared<PartitionedSend>(table, call_with(from));
  const auto receive = std::make_shared<PartitionedReceive>(table, call_with(to));
  FUZZ_CHECK(send->open().ok() && receive->open().ok());
  send->renew();
  receive->renew();
  FUZZ_CHECK(send->pready(0, kPartitions - 1).ok());
  const auto go_on = [&] {
    for (int i = 0; i < 3; ++i) {
      (void)send->advance(host);
      (void)receive->advance(host);
    }
  };
  if (is_met) {
    std::vector<std::byte> message;
    const wire::Header header{.kind = wire::Kind::hello, .length_bytes = sizeof(wire::Hello)};
    put(message, bytes_of(header));
    put(message, bytes_of(honest_hello()));
    messages.coming.push_back({kPeer, std::move(message)});
    go_on();
  }

  while (!input.empty()) {
    const auto how = input.value<std::uint8_t>();
    wire::Header header;
    header.kind = static_cast<wire::Kind>(input.value<std::uint8_t>() % 16);
    header.to = input.value<std::uint8_t>() % 4;
    header.round = input.value<std::uint8_t>() % 4;
    header.transfer = input.value<std::int8_t>();
    header.partitions = input.value<std::int8_t>();
    header.first_bytes =
        (how & 2) != 0 ? input.value<std::uint64_t>() : input.value<std::uint8_t>();
    header.lineage = (how & 4) != 0 ? input.value<std::uint64_t>() : kLineage;
    std::vector<std::byte> body;
    if (header.kind == wire::Kind::hello && (how & 8) != 0) {
      wire::Hello hello = honest_hello();
      hello.transfers = input.value<std::int8_t>();
      hello.transfer_bytes = input.value<std::uint8_t>();
      hello.total_bytes = input.value<std::uint8_t>();
      put(body, bytes_of(hello));
    } else {
      put(body, input.take(input.value<std::uint8_t>()));
    }
    header.length_bytes = (how & 16) != 0 ? input.value<std::uint64_t>() : body.size();
    std::vector<std::byte> message;
    put(message, bytes_of(header));
    put(message, body);
    if ((how & 32) != 0) message.resize(input.value<std::uint8_t>());
    messages.coming.push_back({(how & 1) != 0 ? kPeer : 2, std::move(message)});
    go_on();
    bool arrived = false;
    for (std::int32_t partition = 0; partition < kPartitions; ++partition)
      (void)receive->parrived(partition, arrived);
  }
  go_on();
  return 0;
}
