// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/freight.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace accord::net {
namespace {

// Of the worker's messages; the mail's are another.
constexpr unsigned kKind = 1;
constexpr std::chrono::seconds kFarewell{1};

}  // namespace

Freight::Freight(Worker& worker, const Bounds& bounds, std::string name)
    : worker_(worker), bounds_(bounds), name_(std::move(name)) {
  worker_.listen(kKind, [this](Bytes message) { hear(message); });
}

Freight::~Freight() {
  worker_.listen(kKind, [](Bytes) {});
}

Status Freight::tell(Peer& peer, const FreightNote& note, Bytes bytes, Bytes more) {
  std::vector<std::byte> message;
  for (const Bytes part : {std::as_bytes(std::span(&note, 1)), bytes, more})
    message.insert(message.end(), part.begin(), part.end());
  if (message.size() > Worker::kMessageBytesMax)
    return {StatusCode::network, "net: an address too long"};
  return worker_.post(peer, kKind, message);
}

bool Freight::tell_error(Peer& peer, FreightNote::What what, std::uint64_t to, const Status& why) {
  constexpr std::size_t kReasonBytesMax = 1024;
  const Bytes text = bytes_of(why.message());
  return tell(peer, {.what = what, .code = static_cast<std::uint32_t>(why.code()), .to = to},
              text.first(std::min(text.size(), kReasonBytesMax)))
             .ok() ||
         !worker_.await(peer).ok();
}

void Freight::hear(Bytes message) {
  FreightNote note;
  if (message.size() < sizeof note) return;
  std::memcpy(static_cast<void*>(&note), message.data(), sizeof note);
  const Bytes rest = message.subspan(sizeof note);
  using What = FreightNote::What;
  const bool is_of_landing = note.what != What::grant && note.what != What::refusal;
  auto& ends = is_of_landing ? landings_ : carriages_;
  const auto found = ends.find(note.to);
  if (found != ends.end()) return found->second->hear(note, rest);
  if (note.what == What::begin) strangers_.push_back({note, {rest.begin(), rest.end()}});
}

// Its carrier may have come first.
void Freight::add_landing(std::uint64_t number, FreightEnd& end) {
  landings_[number] = &end;
  std::erase_if(strangers_, [&](const Stranger& stranger) {
    const bool is_its = stranger.note.to == number;
    if (is_its) end.hear(stranger.note, stranger.bytes);
    return is_its;
  });
}

void Freight::refuse_strangers() {
  std::erase_if(strangers_, [&](const Stranger& stranger) {
    Peer* peer = nullptr;
    return !worker_.connect(carrier_of(stranger.note, stranger.bytes).worker, peer).ok() ||
           tell_error(*peer, FreightNote::What::refusal, stranger.note.from,
                      {StatusCode::unsupported, ""});
  });
}

Status Freight::take_room(device::DeviceRuntime* runtime, std::unique_ptr<Room>& room) {
  const auto fitting =
      std::ranges::find_if(idle_, [&](const auto& idle) { return idle->runtime == runtime; });
  if (fitting != idle_.end()) {
    room = std::move(*fitting);
    idle_.erase(fitting);
    return {};
  }
  if (rooms_ > 0 && (rooms_ + 1) * bounds_.piece_bytes > bounds_.bytes_max) {
    if (idle_.empty()) return {};
    idle_.pop_back();
    --rooms_;
  }
  auto made = std::make_unique<Room>();
  made->runtime = runtime;
  ACCORD_TRY(device::staging_pool().acquire(runtime, bounds_.piece_bytes, made->memory));
  ACCORD_TRY(worker_.share(made->memory.data(), bounds_.piece_bytes, made->region));
  ++rooms_;
  room = std::move(made);
  return {};
}

void Freight::give_back(std::unique_ptr<Room> room) {
  if (room != nullptr) idle_.push_back(std::move(room));
}

Status Freight::take_chunk(device::DeviceRuntime* runtime, device::StagingBuffer& chunk) {
  if (chunks_ > 0 && (chunks_ + 1) * bounds_.piece_bytes > bounds_.bytes_max) return {};
  ACCORD_TRY(device::staging_pool().acquire(runtime, bounds_.piece_bytes, chunk));
  ++chunks_;
  return {};
}

void Freight::give_back(device::StagingBuffer chunk) noexcept {
  if (!chunk.empty()) --chunks_;
}

std::chrono::steady_clock::time_point Freight::farewell() {
  if (!farewell_) farewell_ = std::chrono::steady_clock::now() + kFarewell;
  return *farewell_;
}

Carrier carrier_of(const FreightNote& note, Bytes bytes) {
  const Bytes name = bytes.first(std::min<std::size_t>(note.name_bytes, bytes.size()));
  return {text_of(name), bytes.subspan(name.size())};
}

}  // namespace accord::net
