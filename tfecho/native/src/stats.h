// Counters that a pipeline writes and Python reads.
//
//     std::shared_ptr<Stats> stats = FindStats(id);   // one per pipeline
//     Tally tally(stats);                              // one per iterator
//     tally.Add(Tally::kRead, 1);
//     stats->Read();                                   // the sum over tallies
//
// A dataset op names its counters by number, so that the name survives every
// rewrite of the graph; in a process where nobody reads that number (a tf.data
// service worker) the op counts for itself.

#ifndef TFECHO_STATS_H_
#define TFECHO_STATS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace tfecho {

class Stats;

// What one iterator has counted. A counter has one writer at a time, which
// makes counting a plain addition; everybody may read.
class Tally {
 public:
  // In the order in which Python reads them.
  enum Counter {
    kRead,
    kConsumed,
    kEmitted,
    // Sum over the requests to echo_on_stall of the fresh elements waiting.
    kQueued,
    kRequests,
    kWaitNanos,
    kThinkNanos,
    kNumCounters,
  };

  explicit Tally(std::shared_ptr<Stats> stats);
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally();

  void Add(Counter counter, int64_t amount) {
    Increase(counters_[counter], amount);
  }

  // For counters that several threads write.
  void AddConcurrently(Counter counter, int64_t amount) {
    counters_[counter].fetch_add(amount, std::memory_order_relaxed);
  }

  // Counts the emission of an element that makes `emitted` copies, and leaves
  // `left` to come.
  void CountEmission(int64_t emitted, int64_t left) {
    if (emitted == 1) Add(kConsumed, 1);
    Add(kEmitted, 1);
    if (left == 0) CountCopies(emitted);
  }

  // Counts a fresh element that was given up after `copies` emissions.
  void CountCopies(int64_t copies) {
    if (copies < kFewCopies) return Increase(few_copies_[copies], 1);
    std::lock_guard<std::mutex> lock(mu_);
    ++many_copies_[copies];
  }

 private:
  friend class Stats;
  static constexpr int64_t kFewCopies = 64;

  static void Increase(std::atomic<int64_t>& value, int64_t amount) {
    value.store(value.load(std::memory_order_relaxed) + amount,
                std::memory_order_relaxed);
  }

  const std::shared_ptr<Stats> stats_;
  std::array<std::atomic<int64_t>, kNumCounters> counters_{};
  std::array<std::atomic<int64_t>, kFewCopies> few_copies_{};
  mutable std::mutex mu_;
  std::map<int64_t, int64_t> many_copies_;  // Guarded by `mu_`.
};

// The counters of all iterators of a pipeline, those that are gone included.
class Stats {
 public:
  struct Totals {
    std::array<int64_t, Tally::kNumCounters> counters{};
    std::map<int64_t, int64_t> elements_by_copies;

    // Adds what `tally` has counted.
    void Add(const Tally& tally);
    void Subtract(const Totals& other);
  };

  // What was counted since the last `Reset`.
  Totals Read() const;

  // Counters have one writer, which is not this; hence what they show now is
  // subtracted from now on.
  void Reset();

 private:
  friend class Tally;
  Totals ReadAll() const;  // Under `mu_`.

  mutable std::mutex mu_;
  std::set<const Tally*> tallies_;  // Guarded by `mu_`, as what follows.
  Totals gone_;
  Totals at_reset_;
};

// Returns the counters called `id`, or new ones if `id` is not registered.
std::shared_ptr<Stats> FindStats(int64_t id);

// Returns where an iterator counts for `stats`: nowhere if that is null.
inline std::unique_ptr<Tally> MakeTally(const std::shared_ptr<Stats>& stats) {
  return stats == nullptr ? nullptr : std::make_unique<Tally>(stats);
}

}  // namespace tfecho

#endif  // TFECHO_STATS_H_
