// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/net_transport.h"

#include <fmt/format.h>

#include <utility>

namespace accord::coll {
namespace {

// Numbers of mail may be 0.
Transport::Name name_of(std::uint32_t number) { return Transport::Name{number} + 1; }
std::uint32_t number_of(Transport::Name name) { return static_cast<std::uint32_t>(name - 1); }

Status with_rank(const Status& status, int rank) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("nodes: rank {}: {}", rank, status.message())};
}

class Offer final : public Transport::End {
 public:
  Offer(net::Mail& mail, int rank, std::uint32_t number)
      : mail_(mail), rank_(rank), number_(number) {}
  // Its memory goes now: nothing may read it any more.
  ~Offer() override {
    stop();
    for (bool ended = false; !ended;) (void)poll(ended);
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  Status poll(bool& ended) override {
    if (!has_ended_) {
      auto stage = net::Mail::Stage::ended;
      keep_first(status_, mail_.look(number_, stage));
      has_ended_ = stage == net::Mail::Stage::ended;
    }
    ended = has_ended_;
    return ended ? with_rank(status_, rank_) : Status();
  }
  void stop() noexcept override { mail_.withdraw(number_); }

 private:
  net::Mail& mail_;
  const int rank_;
  const std::uint32_t number_;
  Status status_;
  bool has_ended_ = false;
};

class Fetch final : public Transport::End {
 public:
  Fetch(net::Mail& mail, int rank, std::shared_ptr<net::Mail::Fetch> fetch)
      : mail_(mail), rank_(rank), fetch_(std::move(fetch)) {}
  ~Fetch() override { (void)mail_.wait(*fetch_); }
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  Status poll(bool& ended) override { return with_rank(mail_.poll(*fetch_, ended), rank_); }
  // What is on its way comes, or its sender ends it.
  void stop() noexcept override {}

 private:
  net::Mail& mail_;
  const int rank_;
  std::shared_ptr<net::Mail::Fetch> fetch_;
};

}  // namespace

std::unique_ptr<Transport::End> NetTransport::offer(int rank, const net::Memory& from, Name& name) {
  const std::uint32_t number = mail_.offer(job_rank_(rank), design_, from);
  name = name_of(number);
  return std::make_unique<Offer>(mail_, rank, number);
}

std::unique_ptr<Transport::End> NetTransport::fetch(int rank, Name name, const net::Memory& to) {
  return std::make_unique<Fetch>(mail_, rank,
                                 mail_.begin_fetch(job_rank_(rank), number_of(name), to));
}

void NetTransport::dismiss(int rank, Name name) noexcept {
  mail_.dismiss(job_rank_(rank), number_of(name));
}

}  // namespace accord::coll
