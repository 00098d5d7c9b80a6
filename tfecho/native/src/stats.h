// Counters that a pipeline writes and Python reads.
//
// A dataset op names its counters by number, so that the name survives every
// rewrite of the graph; in a process where nobody reads that number (a tf.data
// service worker) the op counts for itself.

#ifndef TFECHO_STATS_H_
#define TFECHO_STATS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tfecho {

struct Stats {
  std::atomic<int64_t> read{0};
  std::atomic<int64_t> consumed{0};
  std::atomic<int64_t> emitted{0};
  // Sum over the requests to echo_on_stall of the fresh elements waiting then.
  std::atomic<int64_t> queued{0};
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> wait_nanos{0};
  std::atomic<int64_t> think_nanos{0};

  // Counts the emission of an element that makes `emitted` copies, and leaves
  // `left` to come.
  void CountEmission(int64_t emitted, int64_t left);

  // Counts a fresh element that was given up after `copies` emissions.
  void CountCopies(int64_t copies);

  std::map<int64_t, int64_t> Histogram() const;

  void Reset();

 private:
  mutable std::mutex mu_;
  std::map<int64_t, int64_t> histogram_;  // Guarded by `mu_`.
};

inline void Add(std::atomic<int64_t>& counter, int64_t amount) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

// Returns the counters called `id`, or new ones if `id` is not registered.
std::shared_ptr<Stats> FindStats(int64_t id);

}  // namespace tfecho

#endif  // TFECHO_STATS_H_
