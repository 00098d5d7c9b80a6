#include "stats.h"

#include <mutex>
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

constexpr std::atomic<int64_t> Stats::*kFields[] = {
    &Stats::read,       &Stats::consumed,    &Stats::emitted,
    &Stats::wait_nanos, &Stats::think_nanos, &Stats::requests,
};

}  // namespace

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

// Copies the counters into `values`, in the order of `kFields`.
void TfechoStatsRead(int64_t id, int64_t* values) {
  const std::shared_ptr<tfecho::Stats> stats = tfecho::FindStats(id);
  for (auto field : tfecho::kFields) {
    *values++ = ((*stats).*field).load(std::memory_order_relaxed);
  }
}

void TfechoStatsReset(int64_t id) {
  const std::shared_ptr<tfecho::Stats> stats = tfecho::FindStats(id);
  for (auto field : tfecho::kFields) ((*stats).*field).store(0);
}

}  // extern "C"
