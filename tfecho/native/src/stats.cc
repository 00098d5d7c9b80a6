#include "stats.h"

#include <unordered_map>

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

constexpr std::atomic<int64_t> Stats::*kCounters[] = {
    &Stats::read,     &Stats::consumed,   &Stats::emitted,     &Stats::queued,
    &Stats::requests, &Stats::wait_nanos, &Stats::think_nanos,
};

}  // namespace

void Stats::CountEmission(int64_t copies, int64_t left) {
  if (copies == 1) Add(consumed, 1);
  Add(emitted, 1);
  if (left == 0) CountCopies(copies);
}

void Stats::CountCopies(int64_t copies) {
  std::lock_guard<std::mutex> lock(mu_);
  ++histogram_[copies];
}

std::map<int64_t, int64_t> Stats::Histogram() const {
  std::lock_guard<std::mutex> lock(mu_);
  return histogram_;
}

void Stats::Reset() {
  for (auto counter : kCounters) (this->*counter).store(0);
  std::lock_guard<std::mutex> lock(mu_);
  histogram_.clear();
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

// Copies the counters into `values`, in the order of `kCounters`.
void TfechoStatsRead(int64_t id, int64_t* values) {
  const std::shared_ptr<tfecho::Stats> stats = tfecho::FindStats(id);
  for (auto counter : tfecho::kCounters) {
    *values++ = ((*stats).*counter).load(std::memory_order_relaxed);
  }
}

// Copies up to `capacity` entries of the histogram, by rising number of copies,
// and returns how many there are.
int64_t TfechoStatsHistogram(int64_t id, int64_t capacity, int64_t* copies,
                             int64_t* elements) {
  const auto histogram = tfecho::FindStats(id)->Histogram();
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
