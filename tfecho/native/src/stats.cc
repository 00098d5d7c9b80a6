#include "stats.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tfecho {
namespace {

struct Registry {
  std::mutex mu;
  std::unordered_map<int64_t, std::shared_ptr<Stats>> stats;
};

// Never destroyed: pipeline threads may outlive static destructors.
Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

}  // namespace

Tally::Tally(std::shared_ptr<Stats> stats) : stats_(std::move(stats)) {
  std::lock_guard<std::mutex> lock(stats_->mu_);
  stats_->tallies_.insert(this);
}

Tally::~Tally() {
  std::lock_guard<std::mutex> lock(stats_->mu_);
  stats_->tallies_.erase(this);
  stats_->gone_.Add(*this);
}

void Stats::Totals::Add(const Tally& tally) {
  for (size_t i = 0; i < counters.size(); ++i) {
    counters[i] += tally.counters_[i].load(std::memory_order_relaxed);
  }
  for (int64_t copies = 0; copies < Tally::kFewCopies; ++copies) {
    const int64_t elements =
        tally.few_copies_[copies].load(std::memory_order_relaxed);
    if (elements > 0) elements_by_copies[copies] += elements;
  }
  std::lock_guard<std::mutex> lock(tally.mu_);
  for (const auto& [copies, elements] : tally.many_copies_) {
    elements_by_copies[copies] += elements;
  }
}

void Stats::Totals::Subtract(const Totals& other) {
  for (size_t i = 0; i < counters.size(); ++i) counters[i] -= other.counters[i];
  for (const auto& [copies, elements] : other.elements_by_copies) {
    const auto entry = elements_by_copies.find(copies);
    entry->second -= elements;
    if (entry->second == 0) elements_by_copies.erase(entry);
  }
}

Stats::Totals Stats::Read() const {
  std::lock_guard<std::mutex> lock(mu_);
  Totals totals = ReadAll();
  totals.Subtract(at_reset_);
  return totals;
}

void Stats::Reset() {
  std::lock_guard<std::mutex> lock(mu_);
  at_reset_ = ReadAll();
}

Stats::Totals Stats::ReadAll() const {
  Totals totals = gone_;
  for (const Tally* tally : tallies_) totals.Add(*tally);
  return totals;
}

std::shared_ptr<Stats> FindStats(int64_t id) {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mu);
  auto found = r.stats.find(id);
  return found == r.stats.end() ? std::make_shared<Stats>() : found->second;
}

}  // namespace tfecho

// The functions that Python calls through ctypes.
extern "C" {

void TfechoStatsRegister(int64_t id) {
  tfecho::Registry& r = tfecho::registry();
  std::lock_guard<std::mutex> lock(r.mu);
  r.stats.emplace(id, std::make_shared<tfecho::Stats>());
}

void TfechoStatsUnregister(int64_t id) {
  tfecho::Registry& r = tfecho::registry();
  std::lock_guard<std::mutex> lock(r.mu);
  r.stats.erase(id);
}

// Copies the counters into `values`, in the order of `Tally::Counter`.
void TfechoStatsRead(int64_t id, int64_t* values) {
  const tfecho::Stats::Totals totals = tfecho::FindStats(id)->Read();
  std::copy(totals.counters.begin(), totals.counters.end(), values);
}

// Copies up to `capacity` entries of the histogram, by rising number of copies,
// and returns how many there are.
int64_t TfechoStatsHistogram(int64_t id, int64_t capacity, int64_t* copies,
                             int64_t* elements) {
  const auto histogram = tfecho::FindStats(id)->Read().elements_by_copies;
  int64_t i = 0;
  for (const auto& [key, count] : histogram) {
    if (i == capacity) break;
    copies[i] = key;
    elements[i++] = count;
  }
  return static_cast<int64_t>(histogram.size());
}

void TfechoStatsReset(int64_t id) { tfecho::FindStats(id)->Reset(); }

}  // extern "C"
