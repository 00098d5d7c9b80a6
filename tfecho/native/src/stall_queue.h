// The decision behind echo_on_stall: something fresh, something again, or wait.
//
// One thread pushes fresh elements, others pop. A pop takes the oldest fresh
// element; if there is none, the least recently emitted one of those kept in
// memory; only if there is none either does it wait. Nothing here knows
// TensorFlow, so that the class can be tested by itself under a thread
// sanitizer, for which TensorFlow is no place.

#ifndef TFECHO_STALL_QUEUE_H_
#define TFECHO_STALL_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace tfecho {

enum class Popped {
  kFresh,
  kAgain,
  kEnd,        // The input has ended and everything was emitted.
  kCancelled,  // `Cancel` was called.
  kNothing,    // Nothing to emit at once; only `TryPop` says so.
};

template <typename Element>
class StallQueue {
 public:
  struct Limits {
    int64_t max_factor = 1;   // Emissions of one element, at most.
    int64_t buffer_size = 1;  // Fresh elements waiting, at most.
    int64_t repeat_size = 1;  // Emitted elements kept, at most.
    int64_t warmup = 0;       // Fresh elements before anything is repeated.
  };

  struct Fresh {
    Element element;
    // An error takes its turn like an element, but must not come again.
    bool repeatable = true;
  };

  struct Kept {
    Element element;
    int64_t emitted = 1;
    int64_t arrival = 0;
  };

  // All there is to save, apart from the limits.
  struct State {
    std::deque<Fresh> fresh;
    std::list<Kept> kept;  // Least recently emitted first.
    int64_t arrivals = 0;  // Fresh elements emitted.
    bool ended = false;
  };

  // `released` is told how often an element was emitted when it is given up.
  StallQueue(const Limits& limits, std::function<void(int64_t)> released)
      : limits_(limits), released_(std::move(released)) {}

  // Waits until there is room for another fresh element. Returns false if there
  // never will be.
  bool WaitForRoom() {
    std::unique_lock<std::mutex> lock(mu_);
    producer_waits_ = true;
    room_.wait(lock, [this] { return cancelled_ || HasRoom(); });
    producer_waits_ = false;
    return !cancelled_;
  }

  void Push(Fresh fresh) {
    std::unique_lock<std::mutex> lock(mu_);
    state_.fresh.push_back(std::move(fresh));
    const bool is_awaited = consumers_waiting_ > 0;
    // Whoever is woken would only run into the lock.
    lock.unlock();
    if (is_awaited) ready_.notify_one();
  }

  // Says that nothing more will be pushed.
  void End() {
    std::lock_guard<std::mutex> lock(mu_);
    state_.ended = true;
    ready_.notify_all();
  }

  // Makes every waiting and every later call return.
  void Cancel() {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
    ready_.notify_all();
    room_.notify_all();
  }

  // Takes the next element if that needs no waiting.
  Popped TryPop(Element* element) {
    std::unique_lock<std::mutex> lock(mu_);
    const Popped popped = PopLocked(element);
    WakeOthers(popped, std::move(lock));
    return popped;
  }

  Popped Pop(Element* element) {
    std::unique_lock<std::mutex> lock(mu_);
    ++consumers_waiting_;
    Popped popped;
    while ((popped = PopLocked(element)) == Popped::kNothing) {
      ready_.wait(lock);
    }
    --consumers_waiting_;
    WakeOthers(popped, std::move(lock));
    return popped;
  }

  int64_t num_fresh() const {
    std::lock_guard<std::mutex> lock(mu_);
    return static_cast<int64_t>(state_.fresh.size());
  }

  State Save() const {
    std::lock_guard<std::mutex> lock(mu_);
    return state_;
  }

  void Restore(State state) {
    std::lock_guard<std::mutex> lock(mu_);
    state_ = std::move(state);
    by_emissions_.clear();
    for (auto kept = state_.kept.begin(); kept != state_.kept.end(); ++kept) {
      by_emissions_.emplace(Rank(*kept), kept);
    }
  }

 private:
  using KeptIterator = typename std::list<Kept>::iterator;

  // Orders what is kept by who leaves first: the most often emitted, then the
  // oldest.
  static std::pair<int64_t, int64_t> Rank(const Kept& kept) {
    return {-kept.emitted, kept.arrival};
  }

  bool HasRoom() const {
    return static_cast<int64_t>(state_.fresh.size()) < limits_.buffer_size;
  }

  bool MayRepeat() const {
    return !state_.kept.empty() && state_.arrivals >= limits_.warmup;
  }

  // Wakes the producer if it waits for what was popped, and another consumer if
  // it waits for what may be repeated; gives up the lock.
  void WakeOthers(Popped popped, std::unique_lock<std::mutex> lock) {
    const bool is_room_awaited = popped == Popped::kFresh && producer_waits_;
    const bool is_repeat_awaited = consumers_waiting_ > 0 && MayRepeat();
    lock.unlock();
    if (is_room_awaited) room_.notify_one();
    if (is_repeat_awaited) ready_.notify_one();
  }

  Popped PopLocked(Element* element) {
    if (cancelled_) return Popped::kCancelled;
    if (!state_.fresh.empty()) {
      PopFresh(element);
      return Popped::kFresh;
    }
    if (state_.ended) {
      while (!state_.kept.empty()) Release(state_.kept.begin());
      return Popped::kEnd;
    }
    if (!MayRepeat()) return Popped::kNothing;
    Repeat(element);
    return Popped::kAgain;
  }

  void PopFresh(Element* element) {
    Fresh fresh = std::move(state_.fresh.front());
    state_.fresh.pop_front();
    if (!fresh.repeatable) {
      *element = std::move(fresh.element);
      return;
    }
    ++state_.arrivals;
    if (limits_.max_factor == 1) {
      *element = std::move(fresh.element);
      released_(1);
      return;
    }
    *element = fresh.element;
    Keep(std::move(fresh.element));
  }

  void Keep(Element element) {
    if (static_cast<int64_t>(state_.kept.size()) >= limits_.repeat_size) {
      Release(by_emissions_.begin()->second);
    }
    state_.kept.push_back({std::move(element), 1, state_.arrivals});
    const auto kept = std::prev(state_.kept.end());
    by_emissions_.emplace(Rank(*kept), kept);
  }

  void Repeat(Element* element) {
    const auto kept = state_.kept.begin();
    by_emissions_.erase(Rank(*kept));
    ++kept->emitted;
    by_emissions_.emplace(Rank(*kept), kept);
    *element = kept->element;
    if (kept->emitted >= limits_.max_factor) {
      Release(kept);
    } else {
      state_.kept.splice(state_.kept.end(), state_.kept, kept);
    }
  }

  void Release(KeptIterator kept) {
    released_(kept->emitted);
    by_emissions_.erase(Rank(*kept));
    state_.kept.erase(kept);
  }

  const Limits limits_;
  const std::function<void(int64_t)> released_;

  mutable std::mutex mu_;
  std::condition_variable room_;
  std::condition_variable ready_;
  // All below is guarded by `mu_`.
  State state_;
  std::map<std::pair<int64_t, int64_t>, KeptIterator> by_emissions_;
  bool cancelled_ = false;
  bool producer_waits_ = false;
  int64_t consumers_waiting_ = 0;
};

}  // namespace tfecho

#endif  // TFECHO_STALL_QUEUE_H_
