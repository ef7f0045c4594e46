// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "driver.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "cases.h"
#include "user_operation.h"
#include "watchdog.h"

namespace accord::conformance {
namespace {

constexpr int kAgreeEvery = 16;  // cases between two looks at the other ranks
constexpr std::size_t kTextBytes = 1600;

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// The category of a case is part of the case: --only leaves others out and changes no numbers.
const Category& category_of(const Options& options, std::int64_t case_number) {
  int total = 0;
  for (const Category& category : categories()) total += category.weight;
  const std::uint64_t draw = mix(options.seed, static_cast<std::uint64_t>(case_number), 0x63617465);
  int at = static_cast<int>(draw % static_cast<std::uint64_t>(total));
  for (const Category& category : categories()) {
    if (at < category.weight) return category;
    at -= category.weight;
  }
  return categories().front();
}

bool wanted(const Options& options, const Category& category) {
  // Accord carries partitions on some runtimes only, so a run asks for them by name.
  if (options.only.empty()) return category.body != case_partitioned;
  return std::find(options.only.begin(), options.only.end(), category.name) != options.only.end();
}

// Failures travel as text of a fixed size: a case number and what was seen.
struct Packet {
  std::int64_t case_number;
  char text[kTextBytes];
};

[[noreturn]] void hang_on_purpose() {
  for (;;) pause();
}

void crash_on_purpose(const Run& run) {
  for (const Buffer& buffer : run.buffers()) {
    if (buffer.kind != ACCORD_MEMORY_DEVICE) continue;
    *reinterpret_cast<volatile char*>(buffer.base) =
        1;  // what a slipped device pointer does to the host MPI
    return;
  }
}

}  // namespace

void Driver::run_case(std::int64_t case_number) {
  const Category& category = category_of(environment_.options, case_number);
  watchdog_arm(rerun_line(environment_.options, environment_.size, case_number));
  Run oracle(environment_, Side::oracle, case_number);
  oracle.describe(std::string(category.name) + ":");
  try {
    category.body(oracle);
  } catch (const Skip& skip) {
    ++skipped_;
    ++skip_reasons_[skip.reason];
    watchdog_disarm();
    return;
  }
  oracle.finish();
  std::string complaint = take_user_operation_error();

  Run tested(environment_, Side::tested, case_number);
  tested.describe(std::string(category.name) + ":");
  category.body(tested);
  if (tested.corrupting(Corruption::hang)) hang_on_purpose();
  if (tested.corrupting(Corruption::crash)) crash_on_purpose(tested);
  tested.finish();
  if (complaint.empty()) complaint = take_user_operation_error();
  watchdog_disarm();

  std::vector<std::string> lines = compare(oracle, tested);
  if (!complaint.empty()) lines.push_back(complaint);
  judge(case_number, lines, tested.description());
  ++run_;
  if (environment_.options.verbose && environment_.rank == 0)
    std::printf("case %lld %s %s\n", static_cast<long long>(case_number),
                lines.empty() ? "ok" : "FAILED", tested.description().c_str());
}

void Driver::judge(std::int64_t case_number, const std::vector<std::string>& lines,
                   const std::string& description) {
  if (lines.empty()) return;
  std::string text = description.substr(0, 600) + "\n";
  for (const std::string& line : lines)
    text += "    rank " + std::to_string(environment_.rank) + ": " + line + "\n";
  pending_.push_back({case_number, text.substr(0, kTextBytes - 1)});
  watchdog_pending("CASE " + std::to_string(case_number) + " FAILED before: " + text);
}

std::vector<Driver::Failure> Driver::gather() const {
  const Api& api = environment_.apis.oracle;
  const MPI_Comm world = environment_.oracle_comms->world().handle;
  const auto size = static_cast<std::size_t>(environment_.size);
  int bytes = static_cast<int>(pending_.size() * sizeof(Packet));
  std::vector<int> counts(size), displacements(size);
  api.Allgather.blocking.small(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, world);
  int total = 0;
  for (std::size_t r = 0; r < size; ++r) {
    displacements[r] = total;
    total += counts[r];
  }
  std::vector<Packet> mine(pending_.size() + 1);
  std::vector<Packet> all(static_cast<std::size_t>(total) / sizeof(Packet) + 1);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    mine[i].case_number = pending_[i].case_number;
    std::snprintf(mine[i].text, kTextBytes, "%s", pending_[i].text.c_str());
  }
  api.Allgatherv.blocking.small(mine.data(), bytes, MPI_BYTE, all.data(), counts.data(),
                                displacements.data(), MPI_BYTE, world);
  std::vector<Failure> failures;
  for (std::size_t i = 0; i < static_cast<std::size_t>(total) / sizeof(Packet); ++i)
    failures.push_back({all[i].case_number, all[i].text});
  std::stable_sort(failures.begin(), failures.end(), [](const Failure& a, const Failure& b) {
    return a.case_number < b.case_number;
  });
  return failures;
}

// One line a case that reruns it, then what the first rank that noticed saw. Where the host MPI
// alone got it wrong on any rank, the case says nothing about what is tested.
void Driver::print(const std::vector<Failure>& failures) {
  const auto of_the_host = [](const Failure& failure) {
    return failure.text.find(kOracleMark) != std::string::npos;
  };
  for (auto first = failures.begin(); first != failures.end();) {
    const auto last = std::find_if(first, failures.end(), [&](const Failure& failure) {
      return failure.case_number != first->case_number;
    });
    const auto host = std::find_if(first, last, of_the_host);
    ++(host == last ? failed_ : failed_by_host_);
    const Failure& shown = host == last ? *first : *host;
    first = last;
    if (environment_.rank != 0) continue;
    std::printf("%s rerun: %s\n  %s", host == last ? "FAILED" : "THE HOST MPI FAILED",
                rerun_line(environment_.options, environment_.size, shown.case_number).c_str(),
                shown.text.c_str());
    std::fflush(stdout);
  }
}

bool Driver::agree() {
  const Api& api = environment_.apis.oracle;
  const MPI_Comm world = environment_.oracle_comms->world().handle;
  const Options& options = environment_.options;
  const bool late = options.seconds > 0 && now_s() - started_s_ > options.seconds;
  int mine[2] = {pending_.empty() ? 0 : 1, late ? 1 : 0};
  int all[2] = {0, 0};
  api.Allreduce.blocking.small(mine, all, 2, MPI_INT, MPI_MAX, world);
  if (all[0] != 0) {
    print(gather());
    pending_.clear();
    watchdog_pending("");
  }
  return all[1] == 0 && failed_ < options.failures_max;
}

int Driver::summary() {
  // Few of its defects are left in what is not excluded; more, and the exclusions need a look.
  const bool hosts_fault = failed_by_host_ > std::max<std::int64_t>(2, run_ / 200);
  if (environment_.rank == 0) {
    std::string reasons;
    if (failed_by_host_ > 0)
      reasons = "; " + std::to_string(failed_by_host_) + " failed in the host MPI alone";
    std::string skips;
    for (const auto& [reason, number] : skip_reasons_)
      skips += (skips.empty() ? " (" : "; ") + std::to_string(number) + " " + reason;
    if (!skips.empty()) reasons += skips + ")";
    const double seconds = now_s() - started_s_;
    std::printf("conformance: %lld passed, %lld failed, %lld skipped%s; %.1f s, %.0f cases/s\n",
                static_cast<long long>(run_ - failed_ - failed_by_host_),
                static_cast<long long>(failed_), static_cast<long long>(skipped_), reasons.c_str(),
                seconds, seconds > 0 ? static_cast<double>(run_) / seconds : 0.0);
    std::fflush(stdout);
  }
  return failed_ == 0 && !hosts_fault ? 0 : 1;
}

int Driver::run_all() {
  const Options& options = environment_.options;
  started_s_ = now_s();
  std::int64_t next = options.single_case >= 0 ? options.single_case : options.first;
  const std::int64_t target = options.single_case >= 0 ? 1 : options.count;
  for (std::int64_t done = 0; done < target; ++next) {
    if (options.single_case < 0 && !wanted(options, category_of(options, next))) continue;
    run_case(next);
    ++done;
    if (done % kAgreeEvery == 0 && !agree()) break;
  }
  agree();
  return summary();
}

}  // namespace accord::conformance
