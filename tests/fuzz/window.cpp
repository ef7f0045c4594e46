// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What other ranks of a window send to the service of one: packets, and the bodies that follow long
// ones. The first byte: whether the window is dynamic. Then messages: a tag, a length and bytes,
// which may begin with a header that is right but for its last fields. Nothing is read or written
// beyond the window, and an honest question is answered after all of it.
#include <deque>
#include <map>
#include <vector>

#include "../unit/idle_port.h"
#include "fuzz.h"
#include "rma/service.h"

namespace {

using namespace accord;
using rma::message::Kind;
using rma::message::Packet;

constexpr int kRanks = 3;
constexpr int kOwn = 0;
constexpr std::size_t kBytes = 256;

struct Message {
  int from;
  int tag;
  std::vector<std::byte> bytes;
};

// Its receives take what the input has for them, its sends are done.
class InputWire final : public core::Wire {
 public:
  explicit InputWire(std::deque<Message>& coming) : coming_(coming) {}
  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& request) override {
    FUZZ_CHECK(rank >= 0 && rank < kRanks);
    sent_ += tag == rma::message::kPacketTag && size_bytes >= sizeof(rma::message::Header);
    FUZZ_CHECK(bytes != nullptr);
    request = 0;
    return {};
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& request) override {
    request = ++last_;
    receives_[request] = {rank, tag, bytes, size_bytes};
    return {};
  }
  Status test(core::HostRequest& request, bool& done, core::Completion& completion) override {
    done = request == 0;
    if (done) return {};
    const Receive& mine = receives_.at(request);
    const auto found = std::ranges::find_if(coming_, [&](const Message& one) {
      return one.tag == mine.tag && (mine.rank == kAnyRank || mine.rank == one.from) &&
             one.bytes.size() <= mine.room_bytes;
    });
    if (found == coming_.end()) return {};
    if (!found->bytes.empty()) std::memcpy(mine.bytes, found->bytes.data(), found->bytes.size());
    completion.received_bytes = found->bytes.size();
    coming_.erase(found);
    receives_.erase(request);
    done = true;
    return {};
  }
  void cancel(core::HostRequest&) noexcept override {}
  Status opened() override { return {}; }

 private:
  struct Receive {
    int rank;
    int tag;
    void* bytes;
    std::size_t room_bytes;
  };
  std::deque<Message>& coming_;
  std::map<core::HostRequest, Receive> receives_;
  core::HostRequest last_ = 0;
  std::size_t sent_ = 0;
};

// What is offered has come, and what is fetched is, at once.
class InputTransport final : public net::Transport {
 public:
  bool takes(const device::PointerInfo&) const override { return true; }
  bool reaches(int) override { return true; }
  std::unique_ptr<net::Transport::End> offer(int rank, const net::Memory& from,
                                             Name& name) override {
    FUZZ_CHECK(rank > kOwn && rank < kRanks);
    name = 1;
    std::vector<std::byte> read(from.size_bytes);
    if (!read.empty()) std::memcpy(read.data(), from.start, read.size());
    return std::make_unique<End>();
  }
  std::unique_ptr<net::Transport::End> fetch(int rank, Name, const net::Memory& to) override {
    FUZZ_CHECK(rank > kOwn && rank < kRanks);
    if (to.size_bytes != 0) std::memset(to.start, 1, to.size_bytes);
    return std::make_unique<End>();
  }
  void dismiss(int rank, Name) noexcept override { FUZZ_CHECK(rank > kOwn && rank < kRanks); }

 private:
  class End final : public net::Transport::End {
   public:
    Status poll(bool& ended) override {
      ended = true;
      return {};
    }
    void stop() noexcept override {}
  };
};

class InputTransports final : public rma::Transports {
 public:
  std::int32_t choose(int, std::size_t, const device::PointerInfo&) override { return 0; }
  net::Transport* find(std::int32_t number) override { return number == 0 ? &one_ : nullptr; }

 private:
  InputTransport one_;
};

Status add(const rma::Update&, const std::byte* in, std::byte* inout, std::size_t size_bytes) {
  for (std::size_t i = 0; i < size_bytes; ++i)
    inout[i] = std::byte(std::to_integer<int>(inout[i]) + std::to_integer<int>(in[i]));
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  fuzz::Input input(data, size_bytes);
  const bool is_dynamic = (input.value<std::uint8_t>() & 1) != 0;
  std::vector<std::byte> memory(kBytes);
  rma::Words words;
  rma::LifeLines lines(kRanks);
  rma::Attached attached;
  attached.add(memory.data(), memory.size());
  const rma::Target own =
      is_dynamic ? rma::Target(rma::Place::absolute(), &words, kOwn, &lines, add, &attached)
                 : rma::Target(rma::Place::host(memory.data()), &words, kOwn, &lines, add, nullptr,
                               kBytes);
  std::deque<Message> coming;
  InputTransports transports;
  auto service = std::make_shared<rma::Service>(std::make_unique<InputWire>(coming), kOwn, kRanks,
                                                own, lines, &transports);
  FUZZ_CHECK(service->open().ok());
  test::IdlePort port;
  const auto go_on = [&] {
    for (int i = 0; i < 4; ++i) (void)service->advance(port);
  };

  // One of its own is under way, which replies may be about.
  std::vector<std::byte> got(8);
  const auto asked = std::make_shared<rma::Progress>();
  rma::Service::Question get;
  get.header.kind = Kind::get;
  const rma::Piece piece{.offset_bytes = 0, .length_bytes = got.size()};
  get.pieces = {&piece, 1};
  FUZZ_CHECK(service->ask(1, get, {rma::Place::host(got.data()), {piece}}, asked).ok());

  while (!input.empty()) {
    const auto how = input.value<std::uint8_t>();
    Message message{.from = 1 + (how & 1), .tag = (how >> 1) & 1, .bytes = {}};
    if ((how & 4) != 0) {
      Packet packet;
      std::memset(static_cast<void*>(&packet), 0, sizeof packet);
      packet.header = {};
      packet.header.kind = static_cast<Kind>(input.value<std::uint8_t>() % 12);
      packet.header.from = message.from;
      packet.header.number = input.value<std::uint8_t>() % 4;
      packet.header.pieces = input.value<std::uint8_t>() % 8;
      const auto more = input.value<std::uint8_t>();
      packet.header.lock = static_cast<rma::LockKind>(more % 4);
      if ((more & 128) != 0) packet.header.transport = more >> 5 & 1;
      packet.header.offer = more >> 4 & 1;
      packet.header.update.op = (how & 8) != 0 ? rma::Update::kReplace : how >> 4;
      packet.header.update.element_bytes = input.value<std::uint8_t>();
      packet.header.code = input.value<std::uint8_t>();
      std::int64_t shift = 0;
      if (is_dynamic)
        shift = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(memory.data()));
      rma::Pieces pieces(packet.header.pieces);
      for (rma::Piece& each : pieces)
        each = {.offset_bytes = shift + input.value<std::int16_t>(),
                .length_bytes = std::uint64_t{input.value<std::uint16_t>()}};
      const auto rest = input.take(input.value<std::uint8_t>());
      packet.header.body_bytes = pieces.size() * sizeof(rma::Piece) + rest.size();
      if (!pieces.empty())
        std::memcpy(packet.body, pieces.data(), pieces.size() * sizeof(rma::Piece));
      if (!rest.empty())
        std::memcpy(packet.body + pieces.size() * sizeof(rma::Piece), rest.data(), rest.size());
      const auto* const first = reinterpret_cast<const std::byte*>(&packet);
      message.tag = rma::message::kPacketTag;
      message.bytes.assign(first, first + packet.size_bytes());
    } else {
      const auto bytes = input.take(input.value<std::uint16_t>() % (sizeof(Packet) + 1));
      message.bytes.assign(bytes.begin(), bytes.end());
    }
    coming.push_back(std::move(message));
    go_on();
  }

  coming.clear();
  Packet honest;
  std::memset(static_cast<void*>(honest.body), 0, sizeof honest.body);
  honest.header.kind = Kind::put;
  honest.header.from = 2;
  honest.header.pieces = 1;
  honest.header.body_bytes = sizeof piece + 1;
  const rma::Piece last{
      .offset_bytes =
          is_dynamic ? static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(memory.data()))
                     : 0,
      .length_bytes = 1};
  std::memcpy(honest.body, &last, sizeof last);
  honest.body[sizeof last] = std::byte{77};
  const auto* const first = reinterpret_cast<const std::byte*>(&honest);
  coming.push_back(
      {.from = 2, .tag = rma::message::kPacketTag, .bytes = {first, first + honest.size_bytes()}});
  go_on();
  // It is done in its turn, behind what has yet to come of that rank.
  FUZZ_CHECK(coming.empty());
  return 0;
}
